// Client programs of a swarm.
import { clientName } from "../../names";

/** Peers by client, most frequent first. */
export function clientsOf(peers: readonly { peer_id: string }[]): [name: string, count: number][] {
  const counts = new Map<string, number>();
  for (const peer of peers) {
    const name = clientName(peer.peer_id);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([a, many], [b, few]) => few - many || (a < b ? -1 : 1));
}
