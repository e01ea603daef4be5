// A member's page: status, devices, friends, ratio and torrents. Narrow enough for a frame in the site; live by the member's
// own presence connection.
import "./member.css";
import { useEffect } from "preact/hooks";
import { api } from "../../api/client";
import { language, setLanguage } from "../../i18n";
import { useResource } from "../../resource";
import { Button, Empty, Failure, Loading, StatusDot } from "../../ui";
import { DevicesCard } from "./devices";
import { FriendsCard } from "./friends";
import { claims, getToken, isInvalid, token } from "./member-token";
import { connect, connectionState, disconnect, endCode, me, reconnect } from "./presence";
import { RatioCard } from "./ratio";
import { StatusCard } from "./status";
import { t } from "./texts";
import { TorrentsCard } from "./torrents";

const EVERY_MS = 5000;
/** Disconnect codes with their own text. */
const SIGNED_OUT = 3503;
const TOO_MANY = 3504;

export default function MemberPage() {
  const member = claims.value?.sub ?? null;
  useEffect(() => {
    document.title = t.title;
  }, [language.value]);
  return (
    <main class="member">
      <header class="member-head">
        <h1>{member === null ? t.title : t.user(member)}</h1>
        {member !== null && !isInvalid.value && <ConnectionStatus />}
        <Button small tone="quiet" onClick={() => setLanguage(language.value === "zh" ? "en" : "zh")} label={t.language}>
          {language.value === "zh" ? "English" : "中文"}
        </Button>
      </header>
      {token.value === null ? (
        <Empty title={t.noToken}>{t.noTokenHint}</Empty>
      ) : isInvalid.value ? (
        <Empty title={t.expired}>{t.expiredHint}</Empty>
      ) : (
        <SignedIn key={member} />
      )}
    </main>
  );
}

function SignedIn() {
  useEffect(() => {
    connect(getToken);
    return disconnect;
  }, []);
  const found = useResource("me", (signal) => api.get("/api/v1/me", { signal }), { everyMs: EVERY_MS });
  const mine = found.data;
  return (
    <>
      <ConnectionNote />
      <div class="member-columns">
        <div class="member-column">
          <StatusCard />
          {found.error && !mine && <Failure problem={found.error} retry={found.refresh} />}
          {found.loading && <Loading rows={4} />}
          {mine && <RatioCard mine={mine} />}
          <DevicesCard />
        </div>
        <div class="member-column">
          <FriendsCard />
          {mine && <TorrentsCard title={t.leeching} none={t.noLeeching} torrents={mine.leeching} />}
          {mine && <TorrentsCard title={t.seeding} none={t.noSeeding} torrents={mine.seeding} />}
        </div>
      </div>
    </>
  );
}

function ConnectionStatus() {
  const state = connectionState.value;
  if (state !== "connected") return <span class="dim">{state === "connecting" ? t.connecting : ""}</span>;
  return <StatusDot status={me.value?.status ?? "online"} />;
}

function ConnectionNote() {
  const state = connectionState.value;
  if (state === "stuck") return <p class="member-note" role="status">{t.stuck}</p>;
  if (state !== "ended") return null;
  const reason = endCode.value === SIGNED_OUT ? t.signedOutHere : endCode.value === TOO_MANY ? t.tooMany : t.ended;
  return (
    <p class="member-note" role="status">
      <span>{reason}</span>
      <Button small onClick={reconnect}>
        {t.again}
      </Button>
    </p>
  );
}
