// Recent presence events. The list can be paused; events are still collected.
import { useState } from "preact/hooks";
import type { RecentEvent } from "../../api/types";
import { absolute, clockTime, count } from "../../format";
import { translate } from "../../i18n";
import { eventsSkipped, recentEvents } from "../../live";
import { link } from "../../router";
import { Badge, Button, Card, Empty, Select, StatusDot, statusName } from "../../ui";
import { newSince, ofKind, type Kind } from "./event-filter";
import { causeNames, platformNames, t } from "./texts";

const SHOWN_MAX = 100;

export function RecentEvents() {
  const [kind, setKind] = useState<Kind>("all");
  const [paused, setPaused] = useState<readonly RecentEvent[] | null>(null);
  const events = recentEvents.value;
  const shown = ofKind(paused ?? events, kind, SHOWN_MAX);
  const kinds: { value: Kind; label: string }[] = [
    { value: "all", label: t.eventsAll },
    { value: "joins", label: t.eventsJoins },
    { value: "status", label: t.eventsStatus },
  ];
  const actions = (
    <>
      <Select bare label={t.eventKind} value={kind} options={kinds} onChange={(value) => setKind(value)} />
      <Button small pressed={paused !== null} onClick={() => setPaused(paused ? null : events)}>
        {paused ? t.resume : t.pause}
      </Button>
    </>
  );
  return (
    <Card title={t.events} actions={actions}>
      {paused && (
        <p class="events-paused">
          <Badge tone="warn">{t.pausedWith(count(newSince(events, paused)))}</Badge>
        </p>
      )}
      {shown.length === 0 ? (
        <Empty title={t.eventsEmpty}>{t.eventsEmptyHint}</Empty>
      ) : (
        <ol class="events" tabIndex={0} aria-label={t.events}>
          {shown.map((event) => (
            <EventRow key={`${event.at_ms} ${event.user} ${event.event} ${event.to} ${event.platform}`} event={event} />
          ))}
        </ol>
      )}
      {eventsSkipped.value && <p class="dim">{t.eventsSkipped}</p>}
    </Card>
  );
}

function EventRow(props: { event: RecentEvent }) {
  const { event } = props;
  return (
    <li class={`event event-${event.event}`}>
      <time class="number dim" title={absolute(event.at_ms / 1000)}>
        {clockTime(event.at_ms)}
      </time>
      <StatusDot status={event.to ?? "offline"} bare />
      <a href={link(`/users/${event.user}`)} class="number">
        {event.user}
      </a>
      <span class="event-text">{eventText(event)}</span>
      <span class="dim event-cause">{causeText(event)}</span>
    </li>
  );
}

function eventText(event: RecentEvent): string {
  if (event.event === "joined") return t.joined;
  if (event.event === "left") return t.left;
  return t.changed(statusName(event.from ?? "offline"), statusName(event.to ?? "offline"));
}

function causeText(event: RecentEvent): string {
  const parts = [event.platform ? translate(platformNames, event.platform) : "", event.cause ? translate(causeNames, event.cause) : ""];
  return parts.filter(Boolean).join(" · ");
}
