// Which programs a swarm is made of.
import { clientName } from "../../names";

/** How many of the peers use each client, most first. */
export function clientsOf(peers: readonly { peer_id: string }[]): [name: string, count: number][] {
  const counts = new Map<string, number>();
  for (const peer of peers) {
    const name = clientName(peer.peer_id);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1));
}
