import assert from "node:assert/strict";
import { test } from "node:test";
import { PendingStatus } from "../dist/pending-status.js";
import { deviceName, isDeviceName } from "../dist/device.js";
import { isOnline, Rollcall } from "../dist/index.js";
import WebSocket from "ws";
import { TypingThrottle, Typists } from "../dist/typing.js";
import { readFeedMessage } from "../dist/protocol.js";

function storage(kept = {}) {
  return { getItem: (key) => kept[key] ?? null, setItem: (key, value) => void (kept[key] = value) };
}

test("a tab keeps its device name", () => {
  const tab = storage();
  const name = deviceName(tab);
  assert.ok(isDeviceName(name));
  assert.equal(deviceName(tab), name);
  assert.notEqual(deviceName(storage()), name);
});

test("a device has a name without storage, or with an invalid stored name", () => {
  const forbidden = {
    getItem() {
      throw new Error("forbidden");
    },
    setItem() {
      throw new Error("forbidden");
    },
  };
  assert.ok(isDeviceName(deviceName(forbidden)));
  assert.ok(isDeviceName(deviceName(null)));
  assert.ok(isDeviceName(deviceName(storage({ "rollcall.device": "white space and \n more" }))));
});

test("an invalid device name is refused at once", () => {
  const options = { getToken: async () => "", page: null };
  assert.throws(() => new Rollcall("ws://localhost", { ...options, device: "two words" }), RangeError);
  assert.equal(new Rollcall("ws://localhost", { ...options, device: "laptop" }).device, "laptop");
});

test("p11: pending counts as online", () => {
  assert.ok(isOnline({ id: "1", version: 1, status: "pending" }));
  assert.ok(!isOnline({ id: "1", version: 1, status: "offline" }));
  assert.ok(!isOnline(undefined));
});

test("messages of unknown kinds are ignored", () => {
  for (const data of [null, 7, "x", {}, { type: "later" }, { type: "changes" }, { type: "typing" }]) {
    assert.equal(readFeedMessage(data), null);
  }
  assert.equal(readFeedMessage({ type: "snapshot", users: [] }).type, "snapshot");
});

test("typing is sent at the start, repeated, and sent once at the end", () => {
  const throttle = new TypingThrottle();
  assert.ok(throttle.admits("7", true, 0));
  assert.ok(!throttle.admits("7", true, 2999));
  assert.ok(throttle.admits({ room: "7" }, true, 2999), "a room is not a person");
  assert.ok(throttle.admits("7", true, 3000));
  assert.ok(throttle.admits("7", false, 3001));
  assert.ok(!throttle.admits("7", false, 3002));
});

test("typists are listed by user and room", () => {
  const typists = new Typists();
  typists.apply("7", true);
  typists.apply("7", true, "lobby");
  assert.deepEqual([...typists.notes.values()], [{ from: "7" }, { from: "7", room: "lobby" }]);
  typists.apply("7", false);
  typists.apply("8", false);
  assert.deepEqual([...typists.notes.values()], [{ from: "7", room: "lobby" }]);
  typists.clear();
  assert.equal(typists.notes.size, 0);
});

test("a replaced status request shares the outcome of its replacement", async () => {
  const pending = new PendingStatus();
  assert.equal(pending.open, null);
  const first = pending.set({ status: "busy" });
  const { turn } = pending.open;
  const second = pending.set(null);
  pending.confirm(turn);
  assert.notEqual(pending.open, null, "an answer to the first is not one to the second");
  pending.confirm(pending.open.number);
  await Promise.all([first, second]);
  assert.equal(pending.open, null);
  const third = pending.set({ status: "away" });
  pending.refuse(pending.open.number, new Error("no"));
  await assert.rejects(third, /no/);
});

test("p12: after ten failed attempts the state is stuck, and retries continue", async () => {
  // No server listens there. The first delay is a millisecond, so that ten tries take a second or two.
  const rollcall = new Rollcall("ws://127.0.0.1:1/connection/websocket", {
    getToken: async () => "a token",
    websocket: WebSocket,
    page: null,
    minReconnectDelayMs: 1,
  });
  const seen = [];
  const asked = rollcall.setStatus("busy");
  await new Promise((resolve) => {
    rollcall.state.subscribe((state) => {
      seen.push(state);
      if (state.isStuck) resolve();
    });
    rollcall.connect();
  });
  const { kind, tries, why } = seen.at(-1);
  assert.deepEqual({ kind, tries, reason: why.reason }, { kind: "connecting", tries: 11, reason: "connect called" });
  assert.ok(seen.filter(({ isStuck }) => !isStuck).every((state) => state.tries <= 10));
  rollcall.close();
  await assert.rejects(asked, /disconnected/, "what was asked for is not to be");
  assert.equal(rollcall.state.value.kind, "disconnected");
});
