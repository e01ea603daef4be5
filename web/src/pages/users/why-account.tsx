// An account as the sum of its clients, each with its runs.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { AccountClient, AccountClients, Entry } from "../../api/types";
import * as format from "../../format";
import { useResource } from "../../resource";
import { link } from "../../router";
import { Badge, Button, Bytes, Card, ClientName, Failure, Loading, Table, Time, type Column, type Tone } from "../../ui";
import { SumTable, type SumLine } from "./sum-table";
import { isZero, isSame, parseSums, partsOf, sumOf, type Part } from "./sums";
import { t } from "./texts";
import { TorrentName } from "./torrent-name";

export function WhyAccount(props: { user: number; torrent: number; entries: readonly Entry[]; refreshed(): void }) {
  const { user, torrent } = props;
  const path = { id: user, torrent };
  const found = useResource(`${user} ${torrent}`, (signal) => api.get("/api/v1/users/{id}/torrents/{torrent}/clients", { path, signal }));
  const refresh = () => {
    found.refresh();
    props.refreshed();
  };
  const nameOf = (client: AccountClient) => props.entries.find((entry) => entry.client_id === client.id)?.peer_id ?? null;
  return (
    <>
      <Card title={t.whyTitle} actions={<Button small onClick={refresh}>{t.refresh}</Button>}>
        <p class="dim">{t.whyAccountLead}</p>
        <p class="why-filter">
          {t.whyOne}: {found.data?.account ? <TorrentName {...found.data.account} /> : <a href={link(`/swarms/${torrent}`)}>{`${t.torrent} ${torrent}`}</a>}{" "}
          <a href={link(`/users/${user}`, { tab: "why" })}>{t.showAll}</a>
        </p>
        {found.error && <Failure problem={found.error} retry={found.refresh} />}
        {found.loading && <Loading rows={4} />}
        {found.data && <Sum explained={found.data} nameOf={nameOf} />}
      </Card>
      {found.data && found.data.clients.length > 0 && <Clients clients={found.data.clients} nameOf={nameOf} />}
    </>
  );
}

function Sum(props: { explained: AccountClients; nameOf(client: AccountClient): string | null }) {
  const { account, clients, complete } = props.explained;
  if (!account) return <p class="note">{t.neverAnnouncedTorrent}</p>;
  const lines: SumLine[] = clients.map((client) => ({ key: client.id, label: <ClientLabel client={client} peerId={props.nameOf(client)} />, ...sumOf(partsOf(client)) }));
  const rest = parseSums(props.explained.rest);
  if (!isZero(rest) || !complete) {
    const isLess = rest.uploaded < 0n || rest.downloaded < 0n;
    lines.push({ key: "rest", label: t.rest, hint: isLess ? t.restLess : complete ? t.restHint : t.restCut(clients.length), ...rest });
  }
  const isExact = isSame(sumOf(lines), parseSums(account.figures));
  return (
    <>
      <SumTable lines={lines} figures={account.figures} />
      <p class={`verdict verdict-${isExact ? "exact" : "differs"}`} role="status">{isExact ? `✓ ${t.exact}` : t.differs}</p>
    </>
  );
}

/** The program, if an announce of the client is loaded, and its id. */
function ClientLabel(props: { client: AccountClient; peerId: string | null }) {
  return (
    <span class="client-label">
      {props.peerId ? <ClientName peerId={props.peerId} /> : t.client} <code class="hash" title={props.client.id}>{props.client.id.slice(0, 8)}</code>
    </span>
  );
}

function Clients(props: { clients: readonly AccountClient[]; nameOf(client: AccountClient): string | null }) {
  return (
    <Card flush title={t.clients}>
      <p class="note">{t.clientsLead}</p>
      {props.clients.map((client) => <ClientParts key={client.id} client={client} peerId={props.nameOf(client)} isFirst={client === props.clients[0]} />)}
    </Card>
  );
}

function ClientParts(props: { client: AccountClient; peerId: string | null; isFirst: boolean }) {
  const { client } = props;
  // There may be thousands of rows: closed ones are not rendered.
  const [isOpen, setOpen] = useState(props.isFirst);
  const sums = parseSums(client.total);
  const tone: Tone = client.state === "seeding" ? "ok" : client.state === "leeching" ? "info" : "plain";
  const state = client.state === "seeding" ? t.seedingNow : client.state === "leeching" ? t.leechingNow : t.inactive;
  return (
    <details class="client-parts" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <ClientLabel client={client} peerId={props.peerId} /> <Badge tone={tone}>{state}</Badge>{" "}
        <span class="dim"><Time at={client.last_seen} /></span>{" "}
        <span class="client-sums">↑ <Bytes value={sums.uploaded} /> ↓ <Bytes value={sums.downloaded} /></span>
      </summary>
      {isOpen && <Table columns={columns()} rows={partsOf(client)} rowKey={(part) => `${part.kind} ${part.from} ${part.to} ${part.stretch?.uploaded_low} ${part.stretch?.downloaded_low}`} caption={t.partsOf(client.id)} />}
    </details>
  );
}

function columns(): Column<Part>[] {
  return [
    { key: "kind", title: t.kind, phone: "title", render: (part) => <Kind part={part} /> },
    { key: "from", title: t.from, render: (part) => <Time at={part.from} /> },
    { key: "to", title: t.to, render: (part) => <Time at={part.to} /> },
    { key: "counterUp", title: t.counterUp, align: "end", render: (part) => <Span low={part.stretch?.uploaded_low} high={part.stretch?.uploaded_high} /> },
    { key: "up", title: t.uploaded, align: "end", render: (part) => <Amount value={part.uploaded} withheld={part.withheld.uploaded} /> },
    { key: "counterDown", title: t.counterDown, align: "end", render: (part) => <Span low={part.stretch?.downloaded_low} high={part.stretch?.downloaded_high} /> },
    { key: "down", title: t.downloaded, align: "end", render: (part) => <Amount value={part.downloaded} withheld={part.withheld.downloaded} /> },
  ];
}

function Kind(props: { part: Part }) {
  const { kind, stretch } = props.part;
  const texts: Record<Part["kind"], [string, Tone, string]> = {
    counters: [t.kindCounters, "plain", t.kindCountersHint],
    bridged: [t.kindBridged, "info", t.kindBridgedHint],
    restarted: [t.kindRestarted, "plain", t.kindRestartedHint],
    settled: [t.kindSettled, "plain", t.kindSettledHint],
    foreign: [t.kindForeign, "plain", t.kindForeignHint],
    withheld: [t.kindWithheld, "warn", t.kindWithheldHint],
  };
  const [name, tone, hint] = texts[kind];
  const nodes = stretch && stretch.nodes > 1 ? t.receivedBy(stretch.nodes) : null;
  return (
    <span title={hint}>
      <Badge tone={tone}>{name}</Badge>{nodes && <span class="dim"> {nodes}</span>}
    </span>
  );
}

function Span(props: { low: string | undefined; high: string | undefined }) {
  if (props.low === undefined) return <span class="dim">{format.NOTHING}</span>;
  return <span class="from-to"><Bytes value={props.low} /> → <Bytes value={props.high} /></span>;
}

/** Credited bytes and, if any, those that are not. */
function Amount(props: { value: bigint; withheld: bigint }) {
  return (
    <span class="delta">
      <Bytes value={props.value} />
      {props.withheld > 0n && <span class="withheld" title={t.uncreditedHint}>{t.uncredited} <Bytes value={props.withheld} /></span>}
    </span>
  );
}
