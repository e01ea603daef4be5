// Risk events of a user, newest first.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { RiskEvent } from "../../api/types";
import * as format from "../../format";
import { usePaged } from "../../resource";
import { can } from "../../session";
import { Button, Card, ClientName, Empty, Failure, Loading, MoreButton, Select, Table, Time, words, type Column } from "../../ui";
import { RISK_KINDS, riskKind, riskSentence } from "./risk-texts";
import { t } from "./texts";
import { TorrentName } from "./torrent-name";

type Kind = RiskEvent["kind"] | "";

export function Risks(props: { user: number }) {
  const { user } = props;
  const [kind, setKind] = useState<Kind>("");
  const list = usePaged<RiskEvent>(`${user} ${kind}`, (cursor, signal) =>
    api.get("/api/v1/users/{id}/risks", { path: { id: user }, query: { limit: 50, cursor, kind: kind || undefined }, signal }));
  const options = [{ value: "" as Kind, label: t.allKinds }, ...RISK_KINDS.map((value) => ({ value: value as Kind, label: riskKind(value) }))];
  const actions = (
    <>
      <Select bare label={t.kind} value={kind} options={options} onChange={(next: Kind) => setKind(next)} />
      <Button small onClick={list.refresh} busy={list.busy}>{t.refresh}</Button>
    </>
  );
  return (
    <Card flush title={t.tabRisks} actions={actions}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={3} />}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <Table
          columns={columns()}
          rows={list.items}
          rowKey={(row) => row.id}
          caption={t.tabRisks}
          empty={list.hasMore ? <Empty title={t.riskMore} /> : <Empty tone="ok" title={t.noRisks}>{t.noRisksHint}</Empty>}
        />
      )}
      {list.hasMore && list.items.length > 0 && <p class="note">{t.riskMore}</p>}
      <MoreButton list={list} />
      <span class="visually-hidden" aria-live="polite">{list.busy ? words.loading : ""}</span>
    </Card>
  );
}

function columns(): Column<RiskEvent>[] {
  return [
    { key: "at", title: t.when, render: (row) => <Time at={row.at} /> },
    { key: "event", title: t.eventColumn, wide: true, phone: "title", render: (row) => <Event risk={row} /> },
    { key: "torrent", title: t.torrent, render: (row) => <TorrentName torrent={row.torrent ?? null} infohash={row.infohash} /> },
    { key: "client", title: t.client, render: (row) => <Client risk={row} /> },
  ];
}

function Event(props: { risk: RiskEvent }) {
  const { risk } = props;
  return (
    <div class="risk">
      <strong>{riskKind(risk.kind)}</strong>
      <span>{riskSentence(risk)}</span>
      {risk.unreported ? <span class="risk-more">{t.unreported(format.countExact(risk.unreported))}</span> : null}
    </div>
  );
}

/** Addresses are for admins. */
function Client(props: { risk: RiskEvent }) {
  return (
    <div class="risk risk-from">
      <ClientName peerId={props.risk.peer_id} />
      {can("admin") && <code class="hash risk-address">{props.risk.ip ?? ""}</code>}
    </div>
  );
}
