// What moves: the overview each second and who comes and goes, over the operators' feed; where there is no feed, by asking.
//
// The feed is tried all the time. Whenever it has been silent for a few seconds the same is asked for over HTTP, so that
// the page never depends on it. When that fails as well, the server is away, and we say so until it answers again.
import { signal } from "@preact/signals";
import { Centrifuge, type PublicationContext } from "centrifuge";
import { api, Problem, request } from "./api/client";
import type { Overview, PresenceOccurrence } from "./api/types";
import { backoffMs } from "./backoff";
import { nowS } from "./clock";
import { merged } from "./events";

/** How data comes to us: by feed, by asking, or not at all. */
export type Connection = "live" | "polling" | "away";

/** The whole at a glance. */
export const overview = signal<Overview | null>(null);

/** Who came and went, newest first. */
export const peopleEvents = signal<readonly PresenceOccurrence[]>([]);

/** How many events were too many to be told one by one. */
export const peopleLeftOut = signal(0);

/** How data comes to us. */
export const connection = signal<Connection>("polling");

/** When data last came, in milliseconds since 1970. */
export const dataAtMs = signal(Date.now());

/** How old the data is, in seconds. */
export function dataAgeS(): number {
  return Math.max(0, nowS.value - Math.floor(dataAtMs.value / 1000));
}

/** Counts the times that the server came back: whoever holds data of its own may want to ask again. */
export const returns = signal(0);

const EVENTS_MAX = 500;
const FEED_SILENT_MS = 3500;
const POLL_MS = 2000;
const TICK_MS = 500;

interface Message {
  type?: string;
  overview?: Overview;
  events?: PresenceOccurrence[];
  left_out?: number;
}

let feed: Centrifuge | null = null;
let isOpening = false;
let hasNoFeed = false;
let feedTriedAtMs = 0;
let feedFailures = 0;
let heardAtMs = 0;
let pollAtMs = 0;
let polling = false;
let failures = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Begins, for the operator who is signed in. */
export function startLive(): void {
  stopLive();
  failures = 0;
  feedFailures = 0;
  feedTriedAtMs = 0;
  hasNoFeed = false;
  pollAtMs = 0;
  timer = setInterval(tick, TICK_MS);
  document.addEventListener("visibilitychange", tick);
  tick();
}

/** Ends, and forgets what was seen: the next one to sign in may be somebody else. */
export function stopLive(): void {
  clearInterval(timer);
  timer = undefined;
  document.removeEventListener("visibilitychange", tick);
  feed?.disconnect();
  feed = null;
  heardAtMs = 0;
  overview.value = null;
  peopleEvents.value = [];
  peopleLeftOut.value = 0;
  connection.value = "polling";
  dataAtMs.value = Date.now();
}

function tick(): void {
  const now = Date.now();
  if (document.hidden) return;
  const isDue = now >= feedTriedAtMs + backoffMs(feedFailures, 1, { firstMs: 2000, lastMs: 60_000 });
  if (!feed && !isOpening && !hasNoFeed && isDue) void openFeed();
  if (now - heardAtMs > FEED_SILENT_MS && now >= pollAtMs && !polling) void poll();
}

async function poll(): Promise<void> {
  polling = true;
  try {
    const [latest, people] = await Promise.all([
      api.get("/api/v1/overview"),
      // A process without a gateway knows nobody.
      overview.value && !overview.value.gateway
        ? null
        : api.get("/api/v1/presence/events", { query: { limit: 100 } }).catch(() => null),
    ]);
    if (timer === undefined) return;
    overview.value = latest;
    if (people) take(people.items);
    failures = 0;
    pollAtMs = Date.now() + POLL_MS;
    isHere(Date.now() - heardAtMs <= FEED_SILENT_MS ? "live" : "polling");
  } catch (thrown) {
    if (timer === undefined) return;
    failures += 1;
    pollAtMs = Date.now() + backoffMs(failures, Math.random(), { firstMs: 700, lastMs: 5000 });
    // One lost answer is no news. A server that answers with a refusal is not away.
    if (failures >= 2 && thrown instanceof Problem && (thrown.isAway || thrown.status === 503)) connection.value = "away";
  } finally {
    polling = false;
  }
}

function isHere(how: Connection): void {
  if (connection.value === "away") {
    returns.value += 1;
    feedFailures = 0;
    feedTriedAtMs = 0;
    hasNoFeed = false;
  }
  connection.value = how;
  dataAtMs.value = Date.now();
}

async function openFeed(): Promise<void> {
  const asked = timer;
  feedTriedAtMs = Date.now();
  isOpening = true;
  const first = await token().catch((thrown: unknown) => {
    feedFailures += 1;
    // This process has no gateway, and will have none until it is started anew.
    hasNoFeed = thrown instanceof Problem && thrown.status === 404;
    return null;
  });
  isOpening = false;
  if (first === null || timer !== asked || feed) return;
  const opened = new Centrifuge(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/connection/websocket`, {
    token: first,
    getToken: token,
    minReconnectDelay: 500,
    maxReconnectDelay: 5000,
  });
  feed = opened;
  opened.on("publication", onPublication);
  // For good: a token of another life of the server, say. A new client asks for a new one.
  opened.on("disconnected", () => {
    if (feed === opened) feed = null;
    feedFailures += 1;
    feedTriedAtMs = Date.now();
  });
  // Do not wait for the silence to be long: ask at once whether the server is there.
  opened.on("connecting", () => {
    heardAtMs = 0;
    pollAtMs = 0;
  });
  opened.connect();
}

async function token(): Promise<string> {
  const given = (await request("POST", "/session/feed-token")) as { token: string };
  return given.token;
}

function onPublication(context: PublicationContext): void {
  const message = context.data as Message;
  if (message.type === "overview" && message.overview) {
    heardAtMs = Date.now();
    feedFailures = 0;
    failures = 0;
    overview.value = message.overview;
    isHere("live");
  } else if (message.type === "people" && Array.isArray(message.events)) {
    take(message.events);
    peopleLeftOut.value += message.left_out ?? 0;
  }
}

function take(events: readonly PresenceOccurrence[]): void {
  peopleEvents.value = merged(peopleEvents.value, events, EVENTS_MAX);
}
