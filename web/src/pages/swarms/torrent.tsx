// The page of one torrent: figures, current peers, accounts.
import "./swarms.css";
import { api } from "../../api/client";
import type { Figures, Torrent } from "../../api/types";
import * as format from "../../format";
import { useResource } from "../../resource";
import { link, type PageProps } from "../../router";
import { Badge, Bytes, CopyButton, Count, Duration, Facts, Failure, Infohash, Loading, Name, Page, Stat, Stats, Time } from "../../ui";
import { Slots } from "../../ui/slots";
import { Accounts } from "./accounts";
import { TorrentActions } from "./actions";
import { Size } from "./index";
import { Peers } from "./peers";
import { t } from "./texts";

const EVERY_MS = 3000;

/** By number or infohash. */
export default function TorrentPage(props: PageProps) {
  const id = props.params["id"] ?? "";
  const found = useResource(id, (signal) => api.get("/api/v1/torrents/{id}", { path: { id }, signal }), { everyMs: EVERY_MS });
  const back = <a href={link("/swarms")}>← {t.back}</a>;
  if (!found.data) {
    return (
      <Page title={t.torrentNumber(id)} lead={back}>
        {found.error ? <Failure problem={found.error} retry={found.refresh} /> : <Loading rows={6} />}
      </Page>
    );
  }
  const { torrent, figures } = found.data;
  const name = torrent.name || t.torrentNumber(String(torrent.id));
  return (
    <Page title={<Name text={name} wrap />} tabTitle={format.NOTHING === name ? "" : name} lead={back} actions={<TorrentActions torrent={torrent} refresh={found.refresh} />}>
      {found.error && <Failure problem={found.error} retry={found.refresh} />}
      <SwarmStats torrent={torrent} figures={figures ?? null} />
      <TorrentFacts torrent={torrent} figures={figures ?? null} />
      <Peers torrent={torrent} />
      <Accounts torrent={torrent} />
    </Page>
  );
}

interface Shown {
  torrent: Torrent;
  figures: Figures | null;
}

function SwarmStats({ torrent, figures }: Shown) {
  const swarm = torrent.swarm;
  return (
    <Stats>
      <Stat label={t.seeders} value={<Count value={swarm?.seeders} />} />
      <Stat label={t.leechers} value={<Count value={swarm?.leechers} />} />
      <Stat label={t.snatches} value={<Count value={figures?.completed ?? swarm?.snatches} />} />
      <Stat label={t.size} value={<Size value={torrent.total_bytes} />} />
      <Stat label={t.uploaded} value={<Bytes value={figures?.uploaded} />} note={figures ? credited(figures.credited_uploaded) : undefined} />
      <Stat label={t.downloaded} value={<Bytes value={figures?.downloaded} />} note={figures ? credited(figures.credited_downloaded) : undefined} />
    </Stats>
  );
}

function credited(value: string) {
  return (
    <>
      <Bytes value={value} /> {t.credited}
    </>
  );
}

function TorrentFacts({ torrent, figures }: Shown) {
  return (
    <div class="facts-line">
      <Facts
        items={[
          [t.state, <State torrent={torrent} />],
          [t.torrentId, <span class="number">{torrent.id}</span>],
          [t.infohash, <Hash value={torrent.infohash} />],
          ...(torrent.infohash_v2 ? ([[t.infohashV2, <Hash value={torrent.infohash_v2} />]] as [string, preact.JSX.Element][]) : []),
          [t.slots, <Slots value={torrent.leech_slots} />],
          [t.added, <Time at={torrent.created_at} />],
          ...(figures ? figuresOf(figures) : []),
        ]}
      />
      {!figures && <p class="dim">{t.neverAnnounced}</p>}
    </div>
  );
}

function figuresOf(figures: Figures): [string, preact.JSX.Element][] {
  return [
    [t.seedingTime, <Duration s={figures.seeding_s} />],
    [t.leechingTime, <Duration s={figures.leeching_s} />],
    [t.firstSeen, <Time at={figures.first_seen} />],
    [t.lastSeen, <Time at={figures.last_seen} />],
  ];
}

function Hash(props: { value: string }) {
  return (
    <span class="hash-line">
      <Infohash value={props.value} whole />
      <CopyButton text={props.value} />
    </span>
  );
}

function State({ torrent }: { torrent: Torrent }) {
  return (
    <span class="badges">
      {torrent.enabled && torrent.approved && <Badge tone="ok">{t.approved}</Badge>}
      {!torrent.approved && <Badge tone="warn">{t.pending}</Badge>}
      {!torrent.enabled && <Badge tone="bad">{t.disabled}</Badge>}
    </span>
  );
}
