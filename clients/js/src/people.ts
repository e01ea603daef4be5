/**
 * What is known of people: friends, and those who are tracked besides. Versions decide: what is older than what is known
 * is ignored, so that no order of arrival shows a state of the past.
 *
 * A snapshot replaces all friends, whatever their versions: it is the truth of a new connection, and the server that
 * sends it may be another one than before.
 *
 * The feed does not say why it tells of somebody. Who is tracked and becomes a friend is therefore found among the tracked,
 * and among the friends from the next connection on.
 */

import { LiveMap } from "./live.js";
import type { User } from "./words.js";

/** Friends, the one who looks, and the tracked. */
export class People {
  readonly friends = new LiveMap<string, User>();
  readonly tracked = new LiveMap<string, User>();
  /** Whom the program wants to track; it may not be allowed to see them all. */
  readonly wanted = new Set<string>();
  /** Those of them that are no longer wanted, while the server may still tell of them. */
  readonly #leaving = new Set<string>();
  /** What has come so far of a snapshot of several messages. */
  #parts: User[] | null = null;
  #self: string | null = null;
  readonly #onSelf: (user: User) => void;
  #me: User | null = null;

  /** `onSelf` hears of each change of the one who looks. */
  constructor(onSelf: (user: User) => void) {
    this.#onSelf = onSelf;
  }

  /** Says who looks. */
  setSelf(id: string): void {
    if (this.#self !== id) this.#me = null;
    this.#self = id;
  }

  /** Takes the first message of a connection. Nothing is replaced before the last part of a long snapshot is there. */
  takeSnapshot(users: readonly User[], more = false): void {
    this.#parts = more ? [...users] : null;
    if (!more) this.#replace(users);
  }

  /** Takes a later message. */
  takeChanges(users: readonly User[], removed: readonly string[] = [], more = false): void {
    if (this.#parts === null) return this.#apply(users, removed);
    this.#parts.push(...users);
    if (!more) this.takeSnapshot(this.#parts);
  }

  #replace(users: readonly User[]): void {
    this.#me = null;
    const friends: [string, User][] = [];
    for (const user of users) {
      if (this.#isSelf(user)) this.#takeSelf(user);
      else friends.push([user.id, user]);
    }
    this.friends.replace(friends);
  }

  #apply(users: readonly User[], removed: readonly string[]): void {
    const friends: [string, User][] = [];
    const tracked: [string, User][] = [];
    for (const user of users) {
      if (this.#isSelf(user)) {
        this.#takeSelf(user);
        continue;
      }
      const isFriend = this.friends.has(user.id);
      const isTracked = this.wanted.has(user.id);
      // Who is neither is a new friend.
      if ((isFriend || !isTracked) && isNews(this.friends.get(user.id), user)) friends.push([user.id, user]);
      if (this.#isShown(user.id) && isNews(this.tracked.get(user.id), user)) tracked.push([user.id, user]);
    }
    this.friends.apply(friends, removed);
    this.tracked.apply(tracked, removed);
  }

  /** Takes what the server says of those who are tracked: all of `asked` that may be seen. */
  takeTracked(asked: readonly string[], users: readonly User[]): void {
    const seen = new Map(users.map((user) => [user.id, user] as [string, User]));
    const news = [...seen].filter(([id, user]) => this.#isShown(id) && isNews(this.tracked.get(id), user));
    this.tracked.apply(news, asked.filter((id) => !seen.has(id)));
  }

  /** Wants these people; gives those that the server has to be asked for. */
  want(users: Iterable<string>): string[] {
    const ids = [...new Set(users)].filter((id) => !this.#isShown(id));
    for (const id of ids) {
      this.wanted.add(id);
      this.#leaving.delete(id);
    }
    return ids;
  }

  /** No longer shows people. They are `forget`-ed once the server tells of them no more: until then what it says of them
   * would be taken for news of new friends. */
  untrack(ids: readonly string[]): void {
    ids.filter((id) => this.wanted.has(id)).forEach((id) => this.#leaving.add(id));
    this.tracked.apply([], ids);
  }

  /** Forgets those of these people who have not been wanted again since. */
  forget(ids: Iterable<string>): void {
    for (const id of ids) if (this.#leaving.delete(id)) this.wanted.delete(id);
  }

  /** The connection is gone, and what it would still have told: a snapshot's rest, and of those no longer tracked. */
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

  #takeSelf(user: User): void {
    if (!isNews(this.#me ?? undefined, user)) return;
    this.#me = user;
    this.#onSelf(user);
  }
}

/**
 * Whether `user` is to replace what is known. Version 0 always does: it is what the server sends of somebody who may no
 * longer be seen. The same version does too: more or less of it may be shown than before.
 */
function isNews(known: User | undefined, user: User): boolean {
  return known === undefined || user.version === 0 || user.version >= known.version;
}
