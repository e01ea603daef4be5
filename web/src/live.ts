// Live data: the overview and recent presence events, polled every second while the tab is visible.
//
// Failed polls are retried with backoff. After two failures in a row the server counts as unreachable until it answers.
import { signal } from "@preact/signals";
import { api, forgetAnswers, Problem } from "./api/client";
import type { Overview, RecentEvent } from "./api/types";
import { backoffMs } from "./backoff";
import { nowS } from "./clock";
import { mergeEvents } from "./events";

export type Connection = "live" | "unreachable";

export const overview = signal<Overview | null>(null);

/** Newest first. */
export const recentEvents = signal<readonly RecentEvent[]>([]);

/** Whether more events happened between two polls than one answer holds. */
export const eventsSkipped = signal(false);

export const connection = signal<Connection>("live");

/** When the last answer arrived, in milliseconds since 1970. */
export const updatedAtMs = signal(Date.now());

/** Age of the data in seconds. */
export function dataAgeS(): number {
  return Math.max(0, nowS.value - Math.floor(updatedAtMs.value / 1000));
}

/** Counts how often the server became reachable again: pages with their own data reload then. */
export const reconnects = signal(0);

const POLL_MS = 1000;
const EVENTS_KEPT_MAX = 500;
const EVENTS_PER_POLL = 200;

let isRunning = false;
let isPolling = false;
let failures = 0;
/** Increased by each start and stop: answers to earlier requests are dropped. */
let generation = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Starts polling for the signed-in session. */
export function startLive(): void {
  stopLive();
  isRunning = true;
  document.addEventListener("visibilitychange", onVisibilityChange);
  void poll();
}

/** Stops polling and clears the data: the next session may have other rights. */
export function stopLive(): void {
  isRunning = false;
  isPolling = false;
  generation += 1;
  failures = 0;
  clearTimeout(timer);
  document.removeEventListener("visibilitychange", onVisibilityChange);
  forgetAnswers();
  overview.value = null;
  recentEvents.value = [];
  eventsSkipped.value = false;
  connection.value = "live";
  updatedAtMs.value = Date.now();
}

function onVisibilityChange(): void {
  if (document.hidden) clearTimeout(timer);
  else void poll();
}

async function poll(): Promise<void> {
  if (!isRunning || isPolling || document.hidden) return;
  clearTimeout(timer);
  isPolling = true;
  const current = generation;
  const startedAtMs = Date.now();
  try {
    const [latest, events] = await Promise.all([api.get("/api/v1/overview"), fetchEvents()]);
    if (current !== generation) return;
    overview.value = latest;
    if (events) addEvents(events);
    onAnswer();
  } catch (thrown) {
    if (current !== generation) return;
    onFailure(thrown);
  }
  isPolling = false;
  const pauseMs = failures === 0 ? startedAtMs + POLL_MS - Date.now() : backoffMs(failures, Math.random(), { firstMs: 700, lastMs: 5000 });
  timer = setTimeout(() => void poll(), Math.max(0, pauseMs));
}

async function fetchEvents(): Promise<readonly RecentEvent[] | null> {
  // A process without a gateway has no events.
  if (overview.value && !overview.value.gateway) return null;
  const answer = await api.get("/api/v1/presence/events", { query: { limit: EVENTS_PER_POLL } }).catch(() => null);
  return answer && answer.items;
}

function addEvents(events: readonly RecentEvent[]): void {
  const { items, isComplete } = mergeEvents(recentEvents.value, events, { limit: EVENTS_PER_POLL, max: EVENTS_KEPT_MAX });
  recentEvents.value = items;
  if (!isComplete) eventsSkipped.value = true;
}

function onAnswer(): void {
  failures = 0;
  if (connection.value === "unreachable") reconnects.value += 1;
  connection.value = "live";
  updatedAtMs.value = Date.now();
}

function onFailure(thrown: unknown): void {
  failures += 1;
  // A single lost answer is not reported. A server that refuses the request is reachable.
  if (failures >= 2 && thrown instanceof Problem && (thrown.isUnreachable || thrown.status === 503)) connection.value = "unreachable";
}
