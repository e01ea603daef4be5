// Name of a torrent in a user's list, as a link unless the torrent was removed.
import { link } from "../../router";
import { Infohash, Name } from "../../ui";
import { t } from "./texts";

export interface TorrentRef {
  readonly torrent?: number | null;
  readonly name?: string | null;
  readonly infohash?: string | null;
}

export function TorrentName(props: TorrentRef) {
  const { torrent, name, infohash } = props;
  const text = name ? <Name text={name} /> : infohash ? <Infohash value={infohash} /> : <span class="dim">{t.removedTorrent} {torrent ?? ""}</span>;
  const id = torrent ?? infohash;
  // Without an infohash the torrent was removed and has no page.
  return id == null || infohash == null ? text : <a href={link(`/swarms/${id}`)}>{text}</a>;
}

export function torrentText(torrent: TorrentRef): string {
  return torrent.name ?? torrent.infohash ?? `${t.torrent} ${torrent.torrent ?? ""}`;
}
