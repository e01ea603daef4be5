/**
 * Friends and tracked users. Older versions are ignored, so that messages in any order give the latest state.
 *
 * A snapshot replaces all friends, whatever their versions: it is the state of a new connection, possibly to another server.
 *
 * The feed does not distinguish friends from tracked users. A tracked user who becomes a friend is listed among the friends
 * from the next connection on.
 */

import { LiveMap } from "./live.js";
import type { User } from "./protocol.js";

export class UserStore {
  readonly friends = new LiveMap<string, User>();
  readonly tracked = new LiveMap<string, User>();
  /** Users to track; some may not be visible. */
  readonly wanted = new Set<string>();
  /** No longer wanted, but the server may still send their changes. */
  readonly #leaving = new Set<string>();
  /** Parts of an incomplete snapshot. */
  #parts: User[] | null = null;
  #self: string | null = null;
  readonly #onSelf: (user: User) => void;
  #me: User | null = null;

  /** `onSelf` is called on each change of the connected user. */
  constructor(onSelf: (user: User) => void) {
    this.#onSelf = onSelf;
  }

  setSelf(id: string): void {
    if (this.#self !== id) this.#me = null;
    this.#self = id;
  }

  /** Nothing is replaced before the last part of a snapshot has arrived. */
  applySnapshot(users: readonly User[], more = false): void {
    this.#parts = more ? [...users] : null;
    if (!more) this.#replace(users);
  }

  applyChanges(users: readonly User[], removed: readonly string[] = [], more = false): void {
    if (this.#parts === null) return this.#apply(users, removed);
    this.#parts.push(...users);
    if (!more) this.applySnapshot(this.#parts);
  }

  #replace(users: readonly User[]): void {
    this.#me = null;
    const friends: [string, User][] = [];
    for (const user of users) {
      if (this.#isSelf(user)) this.#applySelf(user);
      else friends.push([user.id, user]);
    }
    this.friends.replace(friends);
  }

  #apply(users: readonly User[], removed: readonly string[]): void {
    const friends: [string, User][] = [];
    const tracked: [string, User][] = [];
    for (const user of users) {
      if (this.#isSelf(user)) {
        this.#applySelf(user);
        continue;
      }
      const isFriend = this.friends.has(user.id);
      const isTracked = this.wanted.has(user.id);
      // Neither: a new friend.
      if ((isFriend || !isTracked) && isNewer(this.friends.get(user.id), user)) friends.push([user.id, user]);
      if (this.#isShown(user.id) && isNewer(this.tracked.get(user.id), user)) tracked.push([user.id, user]);
    }
    this.friends.apply(friends, removed);
    this.tracked.apply(tracked, removed);
  }

  /** `users` are those of `requested` that are visible. */
  applyTracked(requested: readonly string[], users: readonly User[]): void {
    const seen = new Map(users.map((user) => [user.id, user] as [string, User]));
    const changed = [...seen].filter(([id, user]) => this.#isShown(id) && isNewer(this.tracked.get(id), user));
    this.tracked.apply(changed, requested.filter((id) => !seen.has(id)));
  }

  /** Returns the ids that must be requested from the server. */
  want(users: Iterable<string>): string[] {
    const ids = [...new Set(users)].filter((id) => !this.#isShown(id));
    for (const id of ids) {
      this.wanted.add(id);
      this.#leaving.delete(id);
    }
    return ids;
  }

  /** Hides users. They are removed by `forget` once the server has stopped sending them: until then their changes would be
   * taken for new friends. */
  untrack(ids: readonly string[]): void {
    ids.filter((id) => this.wanted.has(id)).forEach((id) => this.#leaving.add(id));
    this.tracked.apply([], ids);
  }

  /** Except those that are wanted again. */
  forget(ids: Iterable<string>): void {
    for (const id of ids) if (this.#leaving.delete(id)) this.wanted.delete(id);
  }

  /** Drops the state of a lost connection: an incomplete snapshot, and users no longer tracked. */
  forgetConnection(): void {
    this.#parts = null;
    this.forget([...this.#leaving]);
  }

  #isShown(id: string): boolean {
    return this.wanted.has(id) && !this.#leaving.has(id);
  }

  #isSelf(user: User): boolean {
    return user.self === true || user.id === this.#self;
  }

  #applySelf(user: User): void {
    if (!isNewer(this.#me ?? undefined, user)) return;
    this.#me = user;
    this.#onSelf(user);
  }
}

/**
 * Whether `user` replaces the known state. Version 0 always does: the user is no longer visible. An equal version does too:
 * more or less of the user may be visible.
 */
function isNewer(known: User | undefined, user: User): boolean {
  return known === undefined || user.version === 0 || user.version >= known.version;
}
