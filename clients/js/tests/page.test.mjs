import assert from "node:assert/strict";
import { test } from "node:test";
import { PageObserver } from "../dist/page.js";

const IDLE_MS = 5 * 60 * 1000;

/** A page as the library sees one: two event targets and a visibility. */
function page(visibilityState = "visible") {
  return { window: new EventTarget(), document: Object.assign(new EventTarget(), { visibilityState }) };
}

/** Time that passes when the test says so. */
function takeTime(t) {
  let now = 0;
  let timers = [];
  t.mock.method(Date, "now", () => now);
  t.mock.method(globalThis, "setTimeout", (call, delay) => {
    const timer = { call, at: now + delay };
    timers.push(timer);
    return timer;
  });
  t.mock.method(globalThis, "clearTimeout", (cleared) => void (timers = timers.filter((timer) => timer !== cleared)));
  return (ms) => {
    now += ms;
    const due = timers.filter(({ at }) => at <= now);
    timers = timers.filter(({ at }) => at > now);
    due.forEach(({ call }) => call());
  };
}

function watch(t, visibility) {
  const pass = takeTime(t);
  const watched = page(visibility);
  const seen = [];
  const events = {
    onState: (state) => seen.push(state),
    onClose: () => seen.push("goodbye"),
    onRestore: () => seen.push("return"),
  };
  const watcher = new PageObserver(watched, IDLE_MS, events);
  const show = (visibilityState) => {
    watched.document.visibilityState = visibilityState;
    watched.document.dispatchEvent(new Event("visibilitychange"));
  };
  const input = (type) => watched.window.dispatchEvent(new Event(type));
  return { watched, seen, watcher, show, input, pass };
}

test("p8: hidden is background, visible is foreground", (t) => {
  const { seen, show, watcher } = watch(t);
  assert.equal(watcher.state, "foreground");
  show("hidden");
  show("hidden");
  show("visible");
  assert.deepEqual(seen, ["background", "foreground"]);
});

test("p8: a page that opens hidden is in the background", (t) => {
  assert.equal(watch(t, "hidden").watcher.state, "background");
});

test("p8: no input for the idle time is inactive, and any input ends it", (t) => {
  const { seen, input, pass } = watch(t);
  pass(IDLE_MS - 1);
  input("keydown");
  pass(IDLE_MS - 1);
  assert.deepEqual(seen, []);
  pass(1);
  assert.deepEqual(seen, ["inactive"]);
  input("pointermove");
  assert.deepEqual(seen, ["inactive", "foreground"]);
  pass(IDLE_MS);
  assert.deepEqual(seen, ["inactive", "foreground", "inactive"], "and it can happen again");
});

test("p8: a hidden page does not become inactive, nor foreground by input", (t) => {
  const { seen, show, input, pass } = watch(t);
  show("hidden");
  pass(2 * IDLE_MS);
  input("scroll");
  assert.deepEqual(seen, ["background"]);
});

test("pagehide closes the connection, and a restored page reconnects", (t) => {
  const { seen, watched } = watch(t);
  watched.window.dispatchEvent(new Event("pagehide"));
  watched.window.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: false }));
  watched.window.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
  assert.deepEqual(seen, ["goodbye", "return"]);
});

test("a stopped observer reports nothing", (t) => {
  const { seen, show, input, watcher, pass } = watch(t);
  watcher.stop();
  show("hidden");
  input("keydown");
  pass(2 * IDLE_MS);
  assert.deepEqual(seen, []);
});
