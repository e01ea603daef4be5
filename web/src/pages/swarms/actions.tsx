// Actions on a torrent. Each asks for confirmation.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Torrent, UpdateTorrent } from "../../api/types";
import { can } from "../../session";
import { attempt, Button, confirm, type Question } from "../../ui";
import { SlotsDialog } from "../../ui/slots";
import { t } from "./texts";

/** Empty without the scope admin. */
export function TorrentActions(props: { torrent: Torrent; refresh(): void }) {
  const { torrent, refresh } = props;
  const [asksSlots, setAsksSlots] = useState(false);
  if (!can("admin")) return null;
  const change = async (body: UpdateTorrent): Promise<boolean> => {
    const done = await attempt(() => api.patch("/api/v1/torrents/{id}", { path: { id: String(torrent.id) }, body }), t.done);
    if (done) refresh();
    return done;
  };
  const ask = async (question: Question, body: UpdateTorrent) => {
    if (await confirm(question)) await change(body);
  };
  return (
    <>
      {torrent.approved ? (
        <Button onClick={() => ask({ title: t.unapproveTitle, body: t.unapproveBody, action: t.unapprove, tone: "danger" }, { approved: false })}>{t.unapprove}</Button>
      ) : (
        <Button tone="primary" onClick={() => ask({ title: t.approveTitle, body: t.approveBody, action: t.approve }, { approved: true })}>
          {t.approve}
        </Button>
      )}
      {torrent.enabled ? (
        <Button tone="danger" onClick={() => ask({ title: t.disableTitle, body: t.disableBody, action: t.disable, tone: "danger" }, { enabled: false })}>
          {t.disable}
        </Button>
      ) : (
        <Button onClick={() => ask({ title: t.enableTitle, body: t.enableBody, action: t.enable }, { enabled: true })}>{t.enable}</Button>
      )}
      <Button onClick={() => setAsksSlots(true)}>{t.setSlots}</Button>
      {asksSlots && (
        <SlotsDialog title={t.slotsTitle} value={torrent.leech_slots} onSave={(leech_slots) => change({ leech_slots })} onClose={() => setAsksSlots(false)} />
      )}
    </>
  );
}
