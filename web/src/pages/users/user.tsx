// The page of one user: figures, activity, torrents, hit-and-runs, presence, risk events, and the parts of the figures.
import "./users.css";
import { api } from "../../api/client";
import type { UserDetails } from "../../api/types";
import { visible } from "../../names";
import { useResource } from "../../resource";
import { link, type PageProps } from "../../router";
import { Card, Empty, Failure, Loading, Name, Page, StatusDot, Tabs, Time } from "../../ui";
import { UserActions } from "./actions";
import { Active } from "./active";
import { AccountFigures, UserFacts } from "./figures";
import { UserState } from "./index";
import { HitAndRuns } from "./hit-and-run";
import { PresenceTab } from "./presence";
import { Risks } from "./risks";
import { t } from "./texts";
import { UserTorrents } from "./torrents";
import { Why } from "./why";

const EVERY_MS = 3000;
const TABS = ["now", "torrents", "hit-and-run", "presence", "risks", "why"] as const;
type TabKey = (typeof TABS)[number];

export default function UserPage(props: PageProps) {
  const id = props.params["id"] ?? "";
  const number = /^[1-9]\d{0,18}$/.test(id) ? Number(id) : 0;
  const found = useResource(id, (signal) => api.get("/api/v1/users/{id}", { path: { id: number }, signal }), { everyMs: EVERY_MS });
  const back = <a href={link("/users")}>← {t.back}</a>;
  if (!found.data) {
    return (
      <Page title={t.userNumber(id)} lead={back}>
        {found.error ? <Failure problem={found.error} retry={found.refresh} /> : <Loading rows={6} />}
      </Page>
    );
  }
  const { user, figures } = found.data;
  const tab = TABS.find((key) => key === props.query.get("tab")) ?? "now";
  return (
    <Page title={user.name ? <Name text={user.name} wrap /> : t.userNumber(id)} tabTitle={user.name ? visible(user.name) : t.userNumber(id)} lead={back} actions={<UserActions user={user} refresh={found.refresh} />}>
      {found.error && <Failure problem={found.error} retry={found.refresh} />}
      <div class="user-line">
        {user.name && <span class="dim">{t.userNumber(id)}</span>}
        <PresenceLine id={number} />
        <UserState user={user} />
      </div>
      {figures ? <AccountFigures user={number} figures={figures} /> : <Card><Empty title={t.neverAnnounced}>{t.neverAnnouncedHint}</Empty></Card>}
      <UserFacts user={user} figures={figures ?? null} />
      <Tabs label={t.tabsLabel} active={tab} tabs={TABS.map((key) => ({ key, label: tabName(key), href: link(`/users/${id}`, { tab: key === "now" ? undefined : key }) }))} />
      <TabBody tab={tab} user={number} shown={found.data} query={props.query} />
    </Page>
  );
}

function tabName(key: TabKey): string {
  const names: Record<TabKey, string> = { now: t.tabNow, torrents: t.tabTorrents, "hit-and-run": t.tabHitAndRun, presence: t.tabPresence, risks: t.tabRisks, why: t.tabWhy };
  return names[key];
}

function TabBody(props: { tab: TabKey; user: number; shown: UserDetails; query: URLSearchParams }) {
  const { tab, user } = props;
  switch (tab) {
    case "now":
      return <Active user={user} />;
    case "torrents":
      return <UserTorrents user={user} />;
    case "hit-and-run":
      return <HitAndRuns user={user} />;
    case "presence":
      return <PresenceTab user={user} />;
    case "risks":
      return <Risks user={user} />;
    case "why":
      return <Why user={user} torrent={Number(props.query.get("torrent")) || null} />;
  }
}

/** Status as shown to others. */
function PresenceLine(props: { id: number }) {
  const presence = useResource(String(props.id), (signal) => api.get("/api/v1/presence/{id}", { path: { id: props.id }, signal }), { everyMs: EVERY_MS });
  if (!presence.data) return null;
  const { status, text, last_seen } = presence.data;
  return (
    <span class="presence-cell">
      <span aria-live="polite">
        <StatusDot status={status} />
      </span>
      {text && <Name text={text} />}
      {status === "offline" && last_seen && (
        <span class="dim">
          {t.lastOnline} <Time at={last_seen} />
        </span>
      )}
    </span>
  );
}
