// Figures of a user, raw and credited, with links to their parts.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Figures, User } from "../../api/types";
import * as format from "../../format";
import { link } from "../../router";
import { Button, Bytes, CopyButton, Count, Duration, Facts, Stat, Stats, Time } from "../../ui";
import { Slots } from "../../ui/slots";
import { ratioOf } from "./sums";
import { t } from "./texts";

export function AccountFigures(props: { user: number; figures: Figures }) {
  const { user, figures } = props;
  const ratio = ratioOf(figures.credited_uploaded, figures.credited_downloaded);
  return (
    <Stats>
      <Stat label={t.ratio} value={ratio === null ? format.NOTHING : format.ratio(ratio)} exact={t.ratioHint} note={ratio === null ? t.noRatio : t.ratioNote} />
      <Amount label={t.uploaded} raw={figures.uploaded} credited={figures.credited_uploaded} user={user} />
      <Amount label={t.downloaded} raw={figures.downloaded} credited={figures.credited_downloaded} user={user} />
      <Stat label={t.seedingTime} value={<Duration s={figures.seeding_s} />} />
      <Stat label={t.leechingTime} value={<Duration s={figures.leeching_s} />} />
      <Stat label={t.completed} value={<Count value={figures.completed} />} />
    </Stats>
  );
}

function Amount(props: { label: string; raw: string; credited: string; user: number }) {
  return (
    <Stat
      label={props.label}
      value={<Bytes value={props.credited} />}
      note={
        <>
          <Bytes value={props.raw} /> {t.raw} · <WhyLink user={props.user} label={`${props.label}: ${t.whyFigure}`} />
        </>
      }
    />
  );
}

/** Link from a figure to its parts. */
export function WhyLink(props: { user: number; torrent?: number | null; label: string; children?: ComponentChildren }) {
  return (
    <a href={link(`/users/${props.user}`, { tab: "why", torrent: props.torrent })} aria-label={props.label} title={props.label}>
      {props.children ?? t.why}
    </a>
  );
}

export function UserFacts(props: { user: User; figures: Figures | null }) {
  const { user, figures } = props;
  const items: [string, ComponentChildren][] = [
    [t.slots, <Slots value={user.leech_slots} />],
    [t.since, <Time at={user.created_at} />],
  ];
  if (figures) items.push([t.firstSeen, <Time at={figures.first_seen} />], [t.lastSeen, <Time at={figures.last_seen} />]);
  if (user.passkey) items.push([t.passkey, <Passkey value={user.passkey} />]);
  return (
    <div class="facts-line">
      <Facts items={items} />
    </div>
  );
}

/** Hidden until requested. */
function Passkey(props: { value: string }) {
  const [isShown, setShown] = useState(false);
  return (
    <span class="hash-line">
      {isShown ? <code class="hash">{props.value}</code> : <code class="hash">••••••••</code>}
      <Button small tone="quiet" onClick={() => setShown(!isShown)}>
        {isShown ? t.hidePasskey : t.showPasskey}
      </Button>
      {isShown && <CopyButton text={props.value} />}
    </span>
  );
}
