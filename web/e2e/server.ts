// Real servers for the tests: the program in ROLLCALL_BIN, on free ports, with data in a folder of its own. Each is ended
// by its own process id.
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "./wait";

const run = promisify(execFile);

/** What the tokens of people are signed with. */
const SECRET = "a secret of the browser tests, 32 characters and more";
const START_LIMIT_MS = 45_000;
const STOP_LIMIT_MS = 20_000;

/** The program under test. */
export function binary(): string {
  const path = process.env["ROLLCALL_BIN"];
  if (!path) throw new Error("ROLLCALL_BIN is not set: name the rollcall program to test");
  return path;
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Ends a process that we started: asks first. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await gone;
  clearTimeout(timer);
}

/** What a person announces. */
export interface Announced {
  uploaded?: number;
  downloaded?: number;
  left?: number;
  event?: "started" | "completed" | "stopped" | "";
  /** Tells clients of one user apart: a digit or letter. */
  client?: string;
}

/** A server. */
export class Server {
  private process: ChildProcess | null = null;
  private said = "";
  private adminKey = "";

  private constructor(
    private readonly folder: string,
    readonly sitePort: number,
    readonly trackerPort: number,
    private readonly settings: Record<string, string>,
  ) {}

  /** Starts one, with these settings besides those that every test wants. */
  static async start(settings: Record<string, string> = {}): Promise<Server> {
    const folder = await mkdtemp(join(tmpdir(), "rollcall-e2e-"));
    const [sitePort, trackerPort] = [await freePort(), await freePort()];
    const server = new Server(folder, sitePort, trackerPort, {
      "site.addr": `127.0.0.1:${sitePort}`,
      "tracker.http_addr": `127.0.0.1:${trackerPort}`,
      "tracker.udp_addr": `127.0.0.1:${trackerPort}`,
      "tracker.min_announce_interval_s": "0",
      "tracker.workers": "1",
      "site.requests_per_address_per_s": "0",
      "site.requests_per_key_per_s": "0",
      "limits.peer_rate_max_mbit_per_s": "10000000",
      "limits.user_rate_max_mbit_per_s": "10000000",
      "gateway.token_hmac_secret": SECRET,
      "access.audit_sync": "every-second",
      ...settings,
    });
    server.adminKey = (await server.command<{ key: string }>("key", "create", "--name", "browser tests", "--scope", "admin")).key;
    await server.launch();
    return server;
  }

  /** Where the dashboard is. */
  get url(): string {
    return `http://127.0.0.1:${this.sitePort}`;
  }

  /** The key that may do everything. */
  get key(): string {
    return this.adminKey;
  }

  /** The link that signs in at once, and leads to a place. */
  signInLink(to = "/", key = this.adminKey): string {
    return `${this.url}/#/sign-in?key=${key}&to=${encodeURIComponent(to)}`;
  }

  /** Runs a command on its data, and gives what it says. */
  async command<T>(...args: string[]): Promise<T> {
    const { stdout } = await run(binary(), [...args, "--json", ...this.flags()], { env: cleanEnvironment() });
    return JSON.parse(stdout) as T;
  }

  /** Starts the process, and waits until it serves. */
  async launch(): Promise<void> {
    const child = spawn(binary(), ["serve", ...this.flags()], { stdio: ["ignore", "pipe", "pipe"], env: cleanEnvironment() });
    this.process = child;
    child.stdout.on("data", (bytes: Buffer) => (this.said += bytes.toString()));
    child.stderr.on("data", (bytes: Buffer) => (this.said += bytes.toString()));
    await eventually("the server to serve", START_LIMIT_MS, async () => {
      if (child.exitCode !== null) throw new Error(`the server ended:\n${this.said}`);
      return (await fetch(`${this.url}/readyz`)).ok;
    });
  }

  /** Stops the process; the data stays. */
  async halt(): Promise<void> {
    if (this.process) await end(this.process);
    this.process = null;
  }

  /** Ends it and removes its data. */
  async end(): Promise<void> {
    await this.halt();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Asks the API, and gives what it answers. */
  async ask<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { "x-api-key": this.adminKey, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? {} : JSON.parse(text)) as T;
  }

  /** Adds a user, with a passkey made from the number. */
  async addUser(id: number): Promise<void> {
    await this.ask("POST", "/api/v1/users", { id, passkey: passkeyOf(id) });
  }

  /** Adds a torrent, with an infohash made from the number. */
  async addTorrent(id: number, name: string, totalBytes = 1_000_000): Promise<void> {
    await this.ask("POST", "/api/v1/torrents", { id, infohash: infohashOf(id), name, total_bytes: String(totalBytes) });
  }

  /** A new key with this scope. */
  async newKey(scope: "read" | "verify" | "admin"): Promise<string> {
    return (await this.ask<{ key: string }>("POST", "/api/v1/keys", { name: `a key to ${scope}`, scopes: [scope] })).key;
  }

  /** Announces over a socket, as a client does, until it is accepted: what was added a moment ago may not be known yet. */
  async announce(user: number, torrent: number, said: Announced = {}): Promise<void> {
    await eventually(`user ${user} to be heard on torrent ${torrent}`, 40_000, () => this.tryAnnounce(user, torrent, said));
  }

  private async tryAnnounce(user: number, torrent: number, said: Announced): Promise<boolean> {
    const hash = infohashOf(torrent).replace(/../g, "%$&");
    const query = [
      `info_hash=${hash}`,
      `peer_id=-qB4650-${`${user}`.padStart(11, "0")}${said.client ?? "a"}`,
      `port=${20_000 + (user % 20_000)}`,
      `uploaded=${said.uploaded ?? 0}`,
      `downloaded=${said.downloaded ?? 0}`,
      `left=${said.left ?? 0}`,
      "compact=1",
      ...(said.event === "" ? [] : [`event=${said.event ?? "started"}`]),
    ];
    const response = await fetch(`http://127.0.0.1:${this.trackerPort}/announce/${passkeyOf(user)}?${query.join("&")}`);
    return !(await response.text()).includes("failure reason");
  }

  /** A token with which a person connects, as a site would make it. */
  token(user: number, lifeS = 3600): string {
    const now = Math.floor(Date.now() / 1000);
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const said = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ sub: String(user), iat: now, exp: now + lifeS })}`;
    return `${said}.${createHmac("sha256", SECRET).update(said).digest("base64url")}`;
  }

  private flags(): string[] {
    const set = Object.entries(this.settings).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
    return ["--data", join(this.folder, "data"), ...set];
  }
}

/** A passkey made from a user's number. */
export function passkeyOf(user: number): string {
  return `${user}`.padStart(32, "0");
}

/** An infohash made from a torrent's number. */
export function infohashOf(torrent: number): string {
  return torrent.toString(16).padStart(40, "ab");
}

/** Settings of an operator's own servers are not for these. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ROLLCALL_") && !/^(REDIS|DB|DATABASE)_/.test(name)));
}
