// The member's devices; signing others out.
import { translate } from "../../i18n";
import { attempt, Button, Card, confirm, Empty, StatusDot } from "../../ui";
import { appStates, platforms } from "../users/names";
import { connectionState, me, signOutDevice, thisDevice } from "./presence";
import { t } from "./texts";

export function DevicesCard() {
  const devices = me.value?.devices ?? [];
  const others = devices.filter((device) => device.id !== thisDevice.value);
  const isConnected = connectionState.value === "connected";
  const end = async (ids: readonly string[], title: string, body: string) => {
    if (!(await confirm({ title, body, action: t.signOut, tone: "danger" }))) return;
    await attempt(() => Promise.all(ids.map(signOutDevice)), t.signedOut);
  };
  const endAll = others.length > 1 && (
    <Button small tone="danger" disabled={!isConnected} onClick={() => end(others.map((device) => device.id), t.signOutOthersTitle, t.signOutOthersBody)}>
      {t.signOutOthers}
    </Button>
  );
  return (
    <Card flush title={t.devices} actions={endAll}>
      {devices.length === 0 ? (
        <Empty title={t.noDevices} />
      ) : (
        <ul class="lines">
          {devices.map((device) => (
            <li key={device.id} class="line">
              <StatusDot status={device.status} bare />
              <span class="line-main">
                <span>
                  {translate(platforms, device.platform)}
                  {device.id === thisDevice.value && <span class="dim"> · {t.thisDevice}</span>}
                </span>
                <span class="dim line-more">
                  {translate(appStates, device.state)} · <span class="mono">{device.id.slice(0, 12)}</span>
                </span>
              </span>
              {device.id !== thisDevice.value && (
                <Button small disabled={!isConnected} onClick={() => end([device.id], t.signOutTitle, t.signOutBody)} label={`${t.signOut}: ${device.id}`}>
                  {t.signOut}
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
