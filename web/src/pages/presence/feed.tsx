// Joins, leaves and changes of status as they happen. It can be stopped, to read; nothing is lost meanwhile.
import { useState } from "preact/hooks";
import type { RecentEvent } from "../../api/types";
import { absolute, clockTime, count } from "../../format";
import { say } from "../../i18n";
import { eventsSkipped, recentEvents } from "../../live";
import { link } from "../../router";
import { Badge, Button, Card, Empty, Select, StatusDot, statusName } from "../../ui";
import { newSince, ofKind, type Kind } from "./events";
import { causeNames, platformNames, t } from "./texts";

const SHOWN_MAX = 100;

/** The list of what happened, newest first. */
export function Feed() {
  const [kind, setKind] = useState<Kind>("all");
  const [frozen, setFrozen] = useState<readonly RecentEvent[] | null>(null);
  const events = recentEvents.value;
  const shown = ofKind(frozen ?? events, kind, SHOWN_MAX);
  const kinds: { value: Kind; label: string }[] = [
    { value: "all", label: t.feedAll },
    { value: "comings", label: t.feedComings },
    { value: "status", label: t.feedStatus },
  ];
  const actions = (
    <>
      <Select bare label={t.feedKind} value={kind} options={kinds} onChange={(value) => setKind(value)} />
      <Button small pressed={frozen !== null} onClick={() => setFrozen(frozen ? null : events)}>
        {frozen ? t.resume : t.pause}
      </Button>
    </>
  );
  return (
    <Card title={t.feed} actions={actions}>
      {frozen && (
        <p class="feed-paused">
          <Badge tone="warn">{t.pausedWith(count(newSince(events, frozen)))}</Badge>
        </p>
      )}
      {shown.length === 0 ? (
        <Empty title={t.feedEmpty}>{t.feedEmptyHint}</Empty>
      ) : (
        <ol class="feed" tabIndex={0} aria-label={t.feed}>
          {shown.map((event) => (
            <Occurrence key={`${event.at_ms} ${event.user} ${event.event} ${event.to} ${event.platform}`} event={event} />
          ))}
        </ol>
      )}
      {eventsSkipped.value && <p class="dim">{t.eventsSkipped}</p>}
    </Card>
  );
}

function Occurrence(props: { event: RecentEvent }) {
  const { event } = props;
  return (
    <li class={`occurrence occurrence-${event.event}`}>
      <time class="number dim" title={absolute(event.at_ms / 1000)}>
        {clockTime(event.at_ms)}
      </time>
      <StatusDot status={event.to ?? "offline"} bare />
      <a href={link(`/users/${event.user}`)} class="number">
        {event.user}
      </a>
      <span class="occurrence-what">{what(event)}</span>
      <span class="dim occurrence-why">{why(event)}</span>
    </li>
  );
}

function what(event: RecentEvent): string {
  if (event.event === "joined") return t.joined;
  if (event.event === "left") return t.left;
  return t.changed(statusName(event.from ?? "offline"), statusName(event.to ?? "offline"));
}

function why(event: RecentEvent): string {
  const said = [event.platform ? say(platformNames, event.platform) : "", event.cause ? say(causeNames, event.cause) : ""];
  return said.filter(Boolean).join(" · ");
}
