// The Access page: users, torrents, clients and ports that the tracker admits; multipliers; API keys. One file per tab.
import type { ComponentType } from "preact";
import { link, type PageProps } from "../../router";
import { can } from "../../session";
import { Page, Tabs } from "../../ui";
import { Clients } from "./clients";
import { Keys } from "./keys";
import { Multipliers } from "./multipliers";
import { Ports } from "./ports";
import { t, tabNames } from "./texts";
import { Torrents } from "./torrents";
import { Users } from "./users";
import "./access.css";

type TabKey = keyof typeof tabNames;

const TABS: [TabKey, ComponentType][] = [
  ["users", Users],
  ["torrents", Torrents],
  ["clients", Clients],
  ["ports", Ports],
  ["multipliers", Multipliers],
  ["keys", Keys],
];

export default function Access(props: PageProps) {
  const active = TABS.find(([key]) => key === props.params["tab"]) ?? TABS[0]!;
  const [key, Shown] = active;
  const tabs = TABS.map(([one]) => ({ key: one, label: tabNames[one], href: link(`/access/${one}`) }));
  return (
    <Page title={t.title} lead={t.intro}>
      <Tabs tabs={tabs} active={key} label={t.title} />
      {!can("admin") && <p class="dim">{t.readOnly}</p>}
      <Shown key={key} />
    </Page>
  );
}
