// Torrents that the member seeds or leeches, latest announce first.
import { useState } from "preact/hooks";
import type { Me, MemberTorrent } from "../../api/types";
import * as format from "../../format";
import { Button, Bytes, Card, Empty, Infohash, Name, Time } from "../../ui";
import { Progress } from "../../ui/progress";
import { shareOf } from "../users/sums";
import { t } from "./texts";

/** Few, for small frames. */
const SHOWN_AT_FIRST = 8;

export function TorrentsCard(props: { title: string; none: string; torrents: Me["seeding"] }) {
  const [isAll, setAll] = useState(false);
  const { count, items } = props.torrents;
  const shown = isAll ? items : items.slice(0, SHOWN_AT_FIRST);
  return (
    <Card flush title={props.title} actions={<span class="dim number">{format.countExact(count)}</span>}>
      {items.length === 0 ? (
        <Empty title={props.none} />
      ) : (
        <ul class="lines">
          {shown.map((torrent) => (
            <Line key={torrent.infohash} torrent={torrent} label={props.title} />
          ))}
        </ul>
      )}
      {shown.length < items.length && (
        <div class="more">
          <Button onClick={() => setAll(true)}>{t.showAllTorrents(format.countExact(items.length))}</Button>
        </div>
      )}
      {shown.length === items.length && count > items.length && <p class="member-rest dim">{t.moreThan(format.countExact(count - items.length))}</p>}
    </Card>
  );
}

function Line(props: { torrent: MemberTorrent; label: string }) {
  const { torrent } = props;
  const share = shareOf(torrent.left, torrent.total_bytes);
  return (
    <li class="line">
      <span class="line-main">
        {torrent.name ? <Name text={torrent.name} /> : <Infohash value={torrent.infohash} />}
        <span class="dim line-more">
          {torrent.total_bytes && torrent.total_bytes !== "0" && (
            <>
              <Bytes value={torrent.total_bytes} /> ·{" "}
            </>
          )}
          {t.announced} <Time at={torrent.last_announce} />
        </span>
      </span>
      {share !== null && share < 1 && <Progress share={share} label={torrent.name ?? props.label} none="" />}
    </li>
  );
}
