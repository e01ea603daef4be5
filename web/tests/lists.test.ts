import { describe, expect, it } from "vitest";
import { gather, type PageQuery } from "../src/live-list";
import { sorted } from "../src/pages/member/presence";
import { clientsOf } from "../src/pages/swarms/clients";
import { sortingOf } from "../src/pages/swarms/sorting";
import { parseSlots } from "../src/ui/slots";

/** A paged list of `n` rows, and the queries it received. */
function listOf(rows: number, most = 1000) {
  const query: PageQuery[] = [];
  const load = async (question: PageQuery) => {
    query.push(question);
    const from = Number(question.cursor ?? 0);
    const to = Math.min(from + Math.min(question.limit, most), rows);
    const items = Array.from({ length: to - from }, (_, index) => from + index);
    return { items, next: to < rows ? String(to) : null };
  };
  return { query, load };
}

describe("a live list", () => {
  it("needs one request if the rows fit into a page", async () => {
    const list = listOf(120);
    const found = await gather(50, list.load);
    expect(found.items.length).toBe(50);
    expect(found.cursor).toBe("50");
    expect(list.query).toEqual([{ limit: 50 }]);
  });

  it("fetches further pages", async () => {
    const list = listOf(120, 40);
    const found = await gather(100, list.load);
    expect(found.items).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(found.cursor).toBe("100");
  });

  it("stops at the end of the list", async () => {
    const found = await gather(500, listOf(120, 100).load);
    expect(found.items.length).toBe(120);
    expect(found.cursor).toBeNull();
  });

  it("stops at an empty page with a cursor", async () => {
    let questions = 0;
    const found = await gather(50, async () => {
      questions += 1;
      return { items: [] as number[], next: "further" };
    });
    expect(questions).toBe(1);
    expect(found.cursor).toBe("further");
  });
});

describe("the order of torrents", () => {
  it("is by seeders, descending, unless the address is valid", () => {
    expect(sortingOf(new URLSearchParams(""))).toEqual({ by: "seeders", order: "desc" });
    expect(sortingOf(new URLSearchParams("sort=evil&order=up"))).toEqual({ by: "seeders", order: "desc" });
    expect(sortingOf(new URLSearchParams("sort=size&order=asc"))).toEqual({ by: "size", order: "asc" });
  });
});

describe("clients of a swarm", () => {
  it("are counted, most frequent first", () => {
    const hex = (text: string) => Array.from(text, (sign) => sign.charCodeAt(0).toString(16)).join("");
    const peers = ["-qB4650-abcdefghijkl", "-TR4060-abcdefghijkl", "-qB4650-lkjihgfedcba"].map((id) => ({ peer_id: hex(id) }));
    expect(clientsOf(peers)).toEqual([
      ["qBittorrent 4.6.5", 2],
      ["Transmission 4.0.6", 1],
    ]);
  });
});

describe("leech slots", () => {
  it("are a number, unlimited or the default", () => {
    expect(parseSlots(" 3 ")).toBe(3);
    expect(parseSlots("-1")).toBe(-1);
    expect(parseSlots("")).toBeNull();
    for (const text of ["-2", "1.5", "ten", "1000001", "99999999"]) expect(parseSlots(text)).toBeUndefined();
  });
});

describe("friends", () => {
  it("are sorted by online, then by last seen", () => {
    const friend = (id: string, status: "online" | "away" | "offline", last_seen?: number) => ({ id, status, version: 1, last_seen: last_seen ?? null });
    const order = sorted([friend("1", "offline", 10), friend("2", "offline", 20), friend("3", "away"), friend("10", "online"), friend("9", "online")]);
    expect(order.map(({ id }) => id)).toEqual(["9", "10", "3", "2", "1"]);
  });
});
