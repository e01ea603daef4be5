// The library in clients/js, as a program uses it.
import WebSocket from "ws";
import { Rollcall } from "../dist/index.js";
import { serve, sign, tell } from "./dialogue.mjs";

let rollcall;
const rooms = new Map();

function start({ url, identity, device, platform }) {
  rollcall = new Rollcall(url, {
    getToken: async () => sign(identity),
    websocket: WebSocket,
    device,
    platform,
    page: null,
    minReconnectDelayMs: 100,
  });
  rollcall.state.subscribe(({ kind, why }) => tell(kind, why));
  rollcall.me.subscribe((me) => me !== null && tell("me", { user: me }));
  rollcall.friends.subscribe(({ changed, removed }) => {
    changed.forEach((id) => tell("friend", { user: rollcall.friends.get(id) }));
    removed.forEach((id) => tell("unfriended", { id }));
  });
  rollcall.tracked.subscribe(({ changed }) => {
    changed.forEach((id) => tell("tracked", { user: rollcall.tracked.get(id) }));
  });
  rollcall.typists.subscribe(() => tell("typists", { now: [...rollcall.typists.values()] }));
  rollcall.connect();
}

async function enter({ room: name }) {
  const room = rollcall.room(name);
  rooms.set(name, room);
  room.joined.subscribe(({ user }) => tell("joined", { room: name, user }));
  room.left.subscribe(({ user }) => tell("left", { room: name, user }));
  await room.ready();
}

serve({
  start,
  enter,
  leave: ({ room }) => rooms.get(room).leave(),
  members: ({ room }) => [...rooms.get(room).users()].sort(),
  set_status: ({ status, text, until }) => rollcall.setStatus(status, { text, until }),
  clear_status: () => rollcall.clearStatus(),
  app_state: ({ state }) => rollcall.setAppState(state),
  typing: ({ to, room, on }) => rollcall.typing(room === undefined ? to : { room }, on),
  track: ({ users }) => rollcall.track(users),
  untrack: ({ users }) => rollcall.untrack(users),
  devices: () => rollcall.devices(),
  sign_out: ({ device }) => rollcall.signOut(device),
  privacy: () => rollcall.privacy(),
  set_privacy: ({ privacy }) => rollcall.setPrivacy(privacy),
  close: () => rollcall.close(),
  open: () => rollcall.connect(),
});
