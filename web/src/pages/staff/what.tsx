// What an item of the queue says, and what it is about.
import type { QueueItem } from "../../api/types";
import * as format from "../../format";
import { clipped, visible } from "../../names";
import { link } from "../../router";
import { Badge, Facts, Name } from "../../ui";
import { riskKind, riskSentence } from "../users/risk-words";
import { t } from "./texts";

const NAME_CHARACTERS = 80;

/** The user of an item in a sentence. */
export function userName(item: QueueItem): string {
  const { user } = item;
  if (!user) return "";
  return user.name ? visible(clipped(user.name, NAME_CHARACTERS)) : t.user(String(user.id));
}

/** The torrent of an item in a sentence. */
export function torrentName(item: QueueItem): string {
  const { torrent } = item;
  if (!torrent) return "";
  return torrent.name ? visible(clipped(torrent.name, NAME_CHARACTERS)) : t.torrent(String(torrent.id));
}

/** What happened. */
export function What(props: { item: QueueItem }) {
  const { item } = props;
  if (item.risk) {
    const { unreported } = item.risk;
    return (
      <div class="queue-what">
        <strong>{riskKind(item.risk.kind)}</strong>
        <span>{riskSentence(item.risk)}</span>
        {unreported ? <span class="dim">{t.unreported(unreported, format.countExact(unreported))}</span> : null}
      </div>
    );
  }
  if (item.hit_and_run) {
    const { downloaded, seeding_s } = item.hit_and_run.account.figures;
    return <div class="queue-what">{t.took(unbroken(format.bytes(downloaded)), unbroken(format.duration(seeding_s)))}</div>;
  }
  if (item.letter) return <Letter letter={item.letter} />;
  const size = item.torrent?.total_bytes ?? "0";
  return <div class="queue-what">{size === "0" ? t.waitsUnknown : t.waits(format.bytes(size))}</div>;
}

/** A number stays with its unit. */
function unbroken(text: string): string {
  return text.replaceAll(" ", "\u00a0");
}

function Letter(props: { letter: NonNullable<QueueItem["letter"]> }) {
  const { letter } = props;
  const fields = Object.entries(letter.fields).map(([name, value]): [string, preact.ComponentChildren] => [name, <Name text={value} wrap most={300} />]);
  return (
    <div class="queue-what">
      <Name text={letter.reason} wrap most={300} />
      <span class="dim">{t.tries(letter.retry)}</span>
      <details>
        <summary>{t.fields}</summary>
        <Facts items={fields} />
      </details>
    </div>
  );
}

/** The user and the torrent, each with its page. */
export function About(props: { item: QueueItem }) {
  const { user, torrent } = props.item;
  return (
    <div class="queue-about">
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
