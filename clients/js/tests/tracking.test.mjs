import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import WebSocket, { WebSocketServer } from "ws";
import { Rollcall } from "../dist/index.js";

/** A server that answers `connect`, and commands by what `answer` says: a result, or `{ error }`. */
async function serve(answer) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  server.on("connection", (socket) => {
    socket.on("message", (text) => {
      for (const { id, connect, rpc } of String(text).split("\n").map((line) => JSON.parse(line))) {
        if (connect) socket.send(JSON.stringify({ id, connect: { client: "c", version: "0", subs: { "feed:#1": {} } } }));
        if (!rpc) continue;
        const { error, ...data } = answer(rpc.method, rpc.data) ?? {};
        socket.send(JSON.stringify(error ? { id, error } : { id, rpc: { data } }));
      }
    });
  });
  return server;
}

async function scene(t, answer) {
  const server = await serve(answer);
  const url = `ws://127.0.0.1:${server.address().port}/`;
  const options = { getToken: async () => "t", page: null, websocket: WebSocket, minReconnectDelayMs: 10 };
  const rollcall = new Rollcall(url, options);
  t.after(() => {
    rollcall.close();
    server.clients.forEach((socket) => socket.terminate());
    server.close();
  });
  rollcall.connect();
  await until(rollcall.state, ({ kind }) => kind === "connected");
  return { server, rollcall };
}

/** Waits until something is so. */
async function until(live, isSo) {
  while (!isSo(live.value)) await new Promise((resolve) => setTimeout(resolve, 5));
}

const all = ({ users }) => ({ users: users.map((id) => ({ id, version: 1, status: "online" })) });
const tracked = (rollcall) => [...rollcall.tracked.keys()];
const busy = { code: 100, message: "internal server error", temporary: true };

test("after a temporary error on a reconnect, users are hidden and tracked again", { timeout: 20_000 }, async (t) => {
  let isBusy = false;
  let shownMeanwhile;
  const { server, rollcall } = await scene(t, (method, data) => {
    if (method !== "track") return {};
    if (!isBusy) return all(data);
    isBusy = false;
    return { error: busy };
  });
  await rollcall.track(["5", "6"]);
  assert.deepEqual(tracked(rollcall), ["5", "6"]);
  isBusy = true;
  const end = rollcall.tracked.subscribe(() => (shownMeanwhile ??= tracked(rollcall)));
  server.clients.forEach((socket) => socket.close(3001, "shutdown"));
  await until({ get value() { return !isBusy && tracked(rollcall).length === 2 && shownMeanwhile; } }, Boolean);
  end();
  assert.deepEqual(shownMeanwhile, []);
});

test("refused users are not requested again, and do not affect others", { timeout: 20_000 }, async (t) => {
  const asked = [];
  const { server, rollcall } = await scene(t, (method, data) => {
    if (method !== "track") return {};
    asked.push(data.users);
    return data.users.includes("9") ? { error: { code: 106, message: "limit exceeded" } } : all(data);
  });
  await rollcall.track(["5"]);
  await assert.rejects(rollcall.track(["8", "9"]), { code: 106 });
  assert.deepEqual(tracked(rollcall), ["5"]);
  server.clients.forEach((socket) => socket.close(3001, "shutdown"));
  await until({ get value() { return asked.length; } }, (count) => count === 3);
  assert.deepEqual(asked, [["5"], ["8", "9"], ["5"]]);
  await rollcall.track(["8"]);
  assert.deepEqual(tracked(rollcall), ["5", "8"]);
});

test("track can be repeated after a temporary error", { timeout: 20_000 }, async (t) => {
  let isBusy = true;
  const { rollcall } = await scene(t, (method, data) => {
    if (method === "track" && isBusy) return { error: busy };
    return method === "track" ? all(data) : {};
  });
  await assert.rejects(rollcall.track(["5"]), { code: 100 });
  isBusy = false;
  await rollcall.track(["5"]);
  assert.deepEqual(tracked(rollcall), ["5"]);
});
