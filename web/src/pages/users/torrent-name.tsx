// A torrent in a list of a user's: its name and the way to it, or what is left of it once it was removed.
import { link } from "../../router";
import { Infohash, Name } from "../../ui";
import { t } from "./texts";

/** What a list says of a torrent. */
export interface TorrentSaid {
  readonly torrent?: number | null;
  readonly name?: string | null;
  readonly infohash?: string | null;
}

/** Its name, as a link where there is something to see. */
export function TorrentName(props: TorrentSaid) {
  const { torrent, name, infohash } = props;
  const text = name ? <Name text={name} /> : infohash ? <Infohash value={infohash} /> : <span class="dim">{t.removedTorrent} {torrent ?? ""}</span>;
  const id = torrent ?? infohash;
  // Without an infohash the torrent was removed: there is no page of it.
  return id == null || infohash == null ? text : <a href={link(`/swarms/${id}`)}>{text}</a>;
}

/** The same as words. */
export function torrentWords(said: TorrentSaid): string {
  return said.name ?? said.infohash ?? `${t.torrent} ${said.torrent ?? ""}`;
}
