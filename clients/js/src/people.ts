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

  /** Takes the first message of a connection. */
  takeSnapshot(users: readonly User[]): void {
    this.#me = null;
    const friends: [string, User][] = [];
    for (const user of users) {
      if (this.#isSelf(user)) this.#takeSelf(user);
      else friends.push([user.id, user]);
    }
    this.friends.replace(friends);
  }

  /** Takes a later message. */
  takeChanges(users: readonly User[], removed: readonly string[] = []): void {
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
      if (isTracked && isNews(this.tracked.get(user.id), user)) tracked.push([user.id, user]);
    }
    this.friends.apply(friends, removed);
    this.tracked.apply(tracked, removed);
  }

  /** Takes what the server says of those who are tracked: all of `asked` that may be seen. */
  takeTracked(asked: readonly string[], users: readonly User[]): void {
    const seen = new Map(users.map((user) => [user.id, user] as [string, User]));
    const news = [...seen].filter(([id, user]) => this.wanted.has(id) && isNews(this.tracked.get(id), user));
    this.tracked.apply(news, asked.filter((id) => !seen.has(id)));
  }

  /** Forgets people that are no longer tracked. */
  untrack(ids: readonly string[]): void {
    ids.forEach((id) => this.wanted.delete(id));
    this.tracked.apply([], ids);
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
