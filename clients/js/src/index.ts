/**
 * Presence of friends, tracked users and rooms.
 *
 * ```ts
 * import { Rollcall } from "rollcall-presence";
 *
 * const rollcall = new Rollcall("wss://pt.example.com/connection/websocket", {
 *   getToken: async () => (await fetch("/rollcall-token")).text(),
 * });
 * rollcall.friends.subscribe(() => {
 *   for (const friend of rollcall.friends.values()) console.log(friend.id, friend.status);
 * });
 * rollcall.connect();
 * ```
 */

export { Live, LiveMap, Signal, type MapChange, type Unsubscribe } from "./live.js";
export { type DocumentLike, type Page, type WindowLike } from "./page.js";
export { Rollcall, type ConnectionState, type RollcallOptions } from "./rollcall.js";
export { Room, type Member, type RoomOptions, type RoomState } from "./room.js";
export { type TypingNote, type TypingTarget } from "./typing.js";
export {
  isOnline,
  type AppState,
  type DeclaredStatus,
  type Device,
  type OwnDevice,
  type Platform,
  type Privacy,
  type Status,
  type User,
  type Visibility,
} from "./protocol.js";
