import assert from "node:assert/strict";
import { test } from "node:test";
import { UserStore } from "../dist/user-store.js";

const user = (id, version, status = "online", more = {}) => ({ id, version, status, ...more });

function people() {
  const selves = [];
  const all = new UserStore((self) => selves.push(self));
  all.setSelf("1");
  return { all, selves };
}

const statuses = (map) => Object.fromEntries([...map].map(([id, { status }]) => [id, status]));

test("a snapshot replaces all friends, whatever their versions", () => {
  const { all, selves } = people();
  all.applySnapshot([user("1", 9, "invisible", { self: true }), user("2", 100), user("3", 5)]);
  const changes = [];
  all.friends.subscribe((change) => changes.push(change));
  all.applySnapshot([user("1", 3, "online", { self: true }), user("2", 7, "away")]);
  assert.deepEqual(statuses(all.friends), { 2: "away" });
  assert.deepEqual(changes, [{ changed: ["2"], removed: ["3"] }]);
  assert.deepEqual(selves.map(({ status }) => status), ["invisible", "online"]);
});

test("older versions are ignored", () => {
  const { all } = people();
  all.applySnapshot([user("2", 10)]);
  all.applyChanges([user("2", 9, "offline")]);
  assert.deepEqual(statuses(all.friends), { 2: "online" });
  all.applyChanges([user("2", 10, "online", { last_seen: 5 })]);
  assert.equal(all.friends.get("2").last_seen, 5, "the same version may show more than before");
  all.applyChanges([user("2", 11, "busy")]);
  assert.deepEqual(statuses(all.friends), { 2: "busy" });
});

test("version 0 replaces any version", () => {
  const { all } = people();
  all.applySnapshot([user("2", 10)]);
  all.applyChanges([user("2", 0, "offline")]);
  assert.deepEqual(statuses(all.friends), { 2: "offline" });
  all.applyChanges([user("2", 10)]);
  assert.deepEqual(statuses(all.friends), { 2: "online" }, "and may be seen again");
});

test("friends are added and removed", () => {
  const { all } = people();
  all.applySnapshot([user("2", 1)]);
  all.applyChanges([user("3", 1, "away")], ["2"]);
  assert.deepEqual(statuses(all.friends), { 3: "away" });
});

test("tracked users are not friends", () => {
  const { all } = people();
  all.applySnapshot([user("2", 1)]);
  ["2", "5", "6"].forEach((id) => all.wanted.add(id));
  all.applyTracked(["2", "5", "6"], [user("2", 1), user("5", 4)]);
  assert.deepEqual([...all.tracked.keys()], ["2", "5"], "6 may not be seen");
  all.applyChanges([user("6", 1, "away"), user("5", 3, "offline"), user("2", 2, "busy")]);
  assert.deepEqual(statuses(all.tracked), { 2: "busy", 5: "online", 6: "away" });
  assert.deepEqual(statuses(all.friends), { 2: "busy" });
  all.untrack(["2", "5"]);
  assert.deepEqual(statuses(all.tracked), { 6: "away" });
  assert.deepEqual(statuses(all.friends), { 2: "busy" }, "a friend stays one");
});

test("a snapshot in parts replaces friends only when complete", () => {
  const { all, selves } = people();
  all.applySnapshot([user("2", 1), user("3", 1)]);
  all.applySnapshot([user("1", 5, "online", { self: true }), user("3", 2, "away")], true);
  all.applyChanges([user("4", 1)], undefined, true);
  assert.deepEqual(statuses(all.friends), { 2: "online", 3: "online" });
  all.applyChanges([user("5", 1, "busy")]);
  assert.deepEqual(statuses(all.friends), { 3: "away", 4: "online", 5: "busy" });
  assert.equal(selves.length, 1);
  all.applySnapshot([user("6", 1)], true);
  all.forgetConnection();
  all.applyChanges([user("3", 3, "offline")]);
  assert.deepEqual(statuses(all.friends), { 3: "offline", 4: "online", 5: "busy" }, "a part alone is nothing");
});

test("late changes of an untracked user do not create a friend", () => {
  const { all } = people();
  all.applySnapshot([user("2", 1)]);
  assert.deepEqual(all.want(["5", "6", "5"]), ["5", "6"]);
  assert.deepEqual(all.want(["5"]), [], "no user is requested twice");
  all.applyTracked(["5", "6"], [user("5", 1), user("6", 1)]);
  all.untrack(["5", "6"]);
  all.applyChanges([user("5", 2, "away")]);
  assert.deepEqual([statuses(all.friends), statuses(all.tracked)], [{ 2: "online" }, {}]);
  assert.deepEqual(all.want(["6"]), ["6"], "wanted again before it was forgotten");
  all.forget(["5", "6"]);
  assert.deepEqual([...all.wanted], ["6"]);
  all.applyChanges([user("5", 3), user("6", 2, "busy")]);
  assert.deepEqual(statuses(all.tracked), { 6: "busy" });
  assert.deepEqual(statuses(all.friends), { 2: "online", 5: "online" }, "a new friend, by now");
});

test("a listener that throws does not affect the others", (t) => {
  const { all } = people();
  const later = [];
  t.mock.method(globalThis, "queueMicrotask", (call) => later.push(call));
  let heard = 0;
  all.friends.subscribe(() => {
    throw new Error("a mistake of the page");
  });
  all.friends.subscribe(() => (heard += 1));
  all.applySnapshot([user("2", 1)]);
  assert.equal(heard, 1);
  assert.throws(later[0], /a mistake of the page/);
});
