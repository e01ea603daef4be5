// A Redis server for one test, with raw commands.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { end, freePort } from "./server";
import { eventually } from "./wait";

export interface Redis {
  url: string;
  /** Returns the raw reply. */
  command(...words: string[]): Promise<string>;
  end(): Promise<void>;
}

export async function startRedis(): Promise<Redis> {
  const folder = await mkdtemp(join(tmpdir(), "rollcall-e2e-redis-"));
  const port = await freePort();
  const child = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"], { stdio: "ignore" });
  const command = async (...words: string[]): Promise<string> => {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    const text = answer.toString();
    if (text.startsWith("-")) throw new Error(text);
    return text;
  };
  await eventually("Redis to serve", 40_000, async () => (await command("PING")).startsWith("+PONG"));
  return {
    url: `redis://127.0.0.1:${port}`,
    command,
    end: async () => {
      await end(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
