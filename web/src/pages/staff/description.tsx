// Description and subject of an item of the queue.
import type { QueueItem } from "../../api/types";
import * as format from "../../format";
import { clipped, visible } from "../../names";
import { link } from "../../router";
import { deadLetterReason } from "../../server-texts";
import { Badge, Facts, Name } from "../../ui";
import { riskKind, riskSentence } from "../users/risk-texts";
import { t } from "./texts";

const NAME_CHARACTERS = 80;

export function userName(item: QueueItem): string {
  const { user } = item;
  if (!user) return "";
  return user.name ? visible(clipped(user.name, NAME_CHARACTERS)) : t.user(String(user.id));
}

export function torrentName(item: QueueItem): string {
  const { torrent } = item;
  if (!torrent) return "";
  return torrent.name ? visible(clipped(torrent.name, NAME_CHARACTERS)) : t.torrent(String(torrent.id));
}

export function Description(props: { item: QueueItem }) {
  const { item } = props;
  if (item.risk) {
    const { unreported } = item.risk;
    return (
      <div class="queue-description">
        <strong>{riskKind(item.risk.kind)}</strong>
        <span>{riskSentence(item.risk)}</span>
        {unreported ? <span class="dim">{t.unreported(unreported, format.countExact(unreported))}</span> : null}
      </div>
    );
  }
  if (item.hit_and_run) {
    const { downloaded, seeding_s } = item.hit_and_run.account.figures;
    return <div class="queue-description">{t.hitAndRun(unbroken(format.bytes(downloaded)), unbroken(format.duration(seeding_s)))}</div>;
  }
  if (item.dead_letter) return <DeadLetterEntry letter={item.dead_letter} />;
  const size = item.torrent?.total_bytes ?? "0";
  return <div class="queue-description">{size === "0" ? t.pendingUnknownSize : t.pending(format.bytes(size))}</div>;
}

/** Keeps a number and its unit on one line. */
function unbroken(text: string): string {
  return text.replaceAll(" ", "\u00a0");
}

function DeadLetterEntry(props: { letter: NonNullable<QueueItem["dead_letter"]> }) {
  const { letter } = props;
  const fields = Object.entries(letter.fields).map(([name, value]): [string, preact.ComponentChildren] => [name, <Name text={value} wrap most={300} />]);
  return (
    <div class="queue-description">
      <Name text={deadLetterReason(letter.reason)} wrap most={300} />
      <span class="dim">{t.retries(letter.retry)}</span>
      <details>
        <summary>{t.fields}</summary>
        <Facts items={fields} />
      </details>
    </div>
  );
}

export function Subject(props: { item: QueueItem }) {
  const { user, torrent } = props.item;
  return (
    <div class="queue-subject">
      {user && (
        <span class="queue-user">
          <a href={link(`/users/${user.id}`)}>
            <Name text={userName(props.item)} />
          </a>
          {user.enabled === false && <Badge tone="bad">{t.disabled}</Badge>}
        </span>
      )}
      {torrent && (
        <a href={link(`/swarms/${torrent.id}`)}>
          <Name text={torrentName(props.item)} />
        </a>
      )}
      {!user && !torrent && <span class="dim">{format.NOTHING}</span>}
    </div>
  );
}
