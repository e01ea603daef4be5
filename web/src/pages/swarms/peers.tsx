// Current peers of a torrent.
import { api } from "../../api/client";
import type { Peer, Torrent } from "../../api/types";
import * as format from "../../format";
import { useLiveList } from "../../live-list";
import { link } from "../../router";
import { can } from "../../session";
import { Badge, Bytes, Card, ClientName, Empty, Failure, Loading, MoreButton, Table, Time, type Column } from "../../ui";
import { Progress } from "../../ui/progress";
import { shareOf } from "../users/sums";
import { clientsOf } from "./clients";
import { t } from "./texts";


const EVERY_MS = 3000;
const CLIENTS_SHOWN = 8;

export function Peers(props: { torrent: Torrent }) {
  const { torrent } = props;
  const id = String(torrent.id);
  const list = useLiveList(id, (page, signal) => api.get("/api/v1/torrents/{id}/peers", { path: { id }, query: page, signal }), { everyMs: EVERY_MS });
  const now = torrent.swarm ? torrent.swarm.seeders + torrent.swarm.leechers : null;
  return (
    <Card flush title={t.peers} actions={now !== null && <span class="dim">{t.peersNow(format.countExact(now))}</span>}>
      {list.error && <Failure problem={list.error} retry={list.refresh} />}
      {list.loading && <Loading rows={4} />}
      {list.items.length > 0 && <Clients peers={list.items} isAll={!list.hasMore} />}
      {!list.loading && (list.items.length > 0 || !list.error) && (
        <Table
          columns={columns(torrent.total_bytes)}
          rows={list.items}
          rowKey={(peer) => `${peer.user} ${peer.peer_id}`}
          phoneRows={10}
          caption={t.peers}
          empty={<Empty title={t.noPeers}>{t.noPeersHint}</Empty>}
        />
      )}
      <MoreButton list={list} />
    </Card>
  );
}

function columns(totalBytes: string): Column<Peer>[] {
  return [
    { key: "user", title: t.user, phone: "title", render: (peer) => <a class="nowrap" href={link(`/users/${peer.user}`)}>{t.userNumber(String(peer.user))}</a> },
    { key: "state", title: t.state, render: (peer) => <Badge tone={peer.seeding ? "ok" : "info"}>{peer.seeding ? t.seeding : t.leeching}</Badge> },
    { key: "client", title: can("admin") ? t.clientAndAddress : t.client, wide: true, render: (peer) => <Client peer={peer} /> },
    { key: "progress", title: t.progress, render: (peer) => <PeerProgress peer={peer} totalBytes={totalBytes} /> },
    { key: "uploaded", title: t.uploaded, align: "end", render: (peer) => <Bytes value={peer.uploaded} /> },
    { key: "downloaded", title: t.downloaded, align: "end", render: (peer) => <Bytes value={peer.downloaded} /> },
    { key: "last_announce", title: t.lastAnnounce, align: "end", render: (peer) => <Time at={peer.last_announce} /> },
  ];
}

function PeerProgress(props: { peer: Peer; totalBytes: string }) {
  const { peer, totalBytes } = props;
  const share = peer.seeding ? 1 : shareOf(peer.left, totalBytes);
  return <Progress share={share} label={t.progress} none={t.unknown} title={peer.left == null ? undefined : t.leftOf(format.bytesExact(peer.left))} />;
}

/** Addresses are for admins. */
function Client(props: { peer: Peer }) {
  const addresses = can("admin") ? ((props.peer.addresses ?? []) as string[]) : [];
  return (
    <span class="client-cell">
      <ClientName peerId={props.peer.peer_id} />
      {addresses.map((address) => (
        <code key={address} class="hash">
          {address}
        </code>
      ))}
    </span>
  );
}

function Clients(props: { peers: readonly Peer[]; isAll: boolean }) {
  const clients = clientsOf(props.peers);
  const rest = clients.slice(CLIENTS_SHOWN).reduce((sum, [, count]) => sum + count, 0);
  return (
    <div class="clients">
      <span class="dim">{props.isAll ? t.clients : t.clientsOfLoaded(props.peers.length)}</span>
      {clients.slice(0, CLIENTS_SHOWN).map(([name, count]) => (
        <Badge key={name}>
          {name} <span class="number">×{count}</span>
        </Badge>
      ))}
      {rest > 0 && <Badge>{t.otherClients(rest)}</Badge>}
    </div>
  );
}
