// Data of the shared server: a few users, torrents and announces with known figures. Tests that change data use their own
// numbers from 100 on.
import type { Server } from "./server";

/** Most seeders. */
export const FILM = { id: 1, name: "A film about a lighthouse", bytes: 4_000_000_000 } as const;
/** Most leechers. */
export const ALBUM = { id: 2, name: "An album of field recordings", bytes: 300_000_000 } as const;
/** Pending approval. */
export const BOOK = { id: 3, name: "A book that is not approved" } as const;
/** Chinese name. */
export const SONG = { id: 4, name: "夜航船 🚢 全集" } as const;

/** Bytes of user 1 on the film. */
export const MOVED = { uploaded: 2_500_000_000, downloaded: 4_000_000_000 } as const;

export async function addTestData(server: Server): Promise<void> {
  await Promise.all([1, 2, 3, 4].map((user) => server.addUser(user)));
  await server.addTorrent(FILM.id, FILM.name, FILM.bytes);
  await server.addTorrent(ALBUM.id, ALBUM.name, ALBUM.bytes);
  await server.ask("POST", "/api/v1/torrents", { id: BOOK.id, infohash: "b".repeat(40), name: BOOK.name, approved: false });
  await server.addTorrent(SONG.id, SONG.name);
  // User 1 downloads the film and uploads some of it to user 3.
  await server.announce(3, FILM.id, { left: FILM.bytes / 2 });
  await server.announce(1, FILM.id, { left: FILM.bytes });
  await server.announce(1, FILM.id, { ...MOVED, left: 0, event: "completed" });
  await Promise.all([
    server.announce(2, FILM.id),
    server.announce(2, ALBUM.id, { left: ALBUM.bytes }),
    server.announce(3, ALBUM.id, { left: ALBUM.bytes / 4 }),
  ]);
  await server.ask("PUT", "/api/v1/users/1/friends/2");
}
