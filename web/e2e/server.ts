// Servers for the tests: the program in ROLLCALL_BIN, on free ports, with its own data folder.
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

/** Signs the members' tokens. */
const SECRET = "a secret of the browser tests, 32 characters and more";
const START_LIMIT_MS = 45_000;
const STOP_LIMIT_MS = 20_000;

export function binary(): string {
  const path = process.env["ROLLCALL_BIN"];
  if (!path) throw new Error("ROLLCALL_BIN is not set: name the rollcall program to test");
  return path;
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** SIGTERM, then SIGKILL. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await gone;
  clearTimeout(timer);
}

export interface Announce {
  uploaded?: number;
  downloaded?: number;
  left?: number;
  event?: "started" | "completed" | "stopped" | "";
  /** Distinguishes clients of one user: a digit or letter. */
  client?: string;
}

export class Server {
  private process: ChildProcess | null = null;
  private output = "";
  private adminKey = "";

  private constructor(
    private readonly folder: string,
    readonly sitePort: number,
    readonly trackerPort: number,
    private readonly settings: Record<string, string>,
  ) {}

  /** `settings` are added to those of all tests. */
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
      ...settings,
    });
    server.adminKey = (await server.command<{ key: string }>("key", "create", "--name", "browser tests", "--scope", "admin")).key;
    await server.launch();
    return server;
  }

    get url(): string {
    return `http://127.0.0.1:${this.sitePort}`;
  }

  /** Has the scope admin. */
  get key(): string {
    return this.adminKey;
  }

  /** Signs in and opens a route. */
  signInLink(to = "/", key = this.adminKey): string {
    return `${this.url}/#/sign-in?key=${key}&to=${encodeURIComponent(to)}`;
  }

  /** Runs a command on the data folder and returns its JSON output. */
  async command<T>(...args: string[]): Promise<T> {
    const { stdout } = await run(binary(), [...args, "--json", ...this.flags()], { env: cleanEnvironment() });
    return JSON.parse(stdout) as T;
  }

  /** Resolves when the server is ready. */
  async launch(): Promise<void> {
    const child = spawn(binary(), ["serve", ...this.flags()], { stdio: ["ignore", "pipe", "pipe"], env: cleanEnvironment() });
    this.process = child;
    child.stdout.on("data", (bytes: Buffer) => (this.output += bytes.toString()));
    child.stderr.on("data", (bytes: Buffer) => (this.output += bytes.toString()));
    await eventually("the server to be ready", START_LIMIT_MS, async () => {
      if (child.exitCode !== null) throw new Error(`the server exited:\n${this.output}`);
      return (await fetch(`${this.url}/readyz`)).ok;
    });
  }

  /** Stops the process and keeps the data. */
  async halt(): Promise<void> {
    if (this.process) await end(this.process);
    this.process = null;
  }

  /** Stops the process and removes the data. */
  async end(): Promise<void> {
    await this.halt();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** API request with the admin key. */
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

    async addUser(id: number): Promise<void> {
    await this.ask("POST", "/api/v1/users", { id, passkey: passkeyOf(id) });
  }

    async addTorrent(id: number, name: string, totalBytes = 1_000_000): Promise<void> {
    await this.ask("POST", "/api/v1/torrents", { id, infohash: infohashOf(id), name, total_bytes: String(totalBytes) });
  }

    async newKey(scope: "read" | "verify" | "admin"): Promise<string> {
    return (await this.ask<{ key: string }>("POST", "/api/v1/keys", { name: `a key to ${scope}`, scopes: [scope] })).key;
  }

  /** Retries until accepted: users and torrents take a moment to reach the gate. */
  async announce(user: number, torrent: number, announce: Announce = {}): Promise<void> {
    await eventually(`an accepted announce of user ${user} on torrent ${torrent}`, 40_000, () => this.tryAnnounce(user, torrent, announce));
  }

  private async tryAnnounce(user: number, torrent: number, announce: Announce): Promise<boolean> {
    const hash = infohashOf(torrent).replace(/../g, "%$&");
    const query = [
      `info_hash=${hash}`,
      `peer_id=-qB4650-${`${user}`.padStart(11, "0")}${announce.client ?? "a"}`,
      `port=${20_000 + (user % 20_000)}`,
      `uploaded=${announce.uploaded ?? 0}`,
      `downloaded=${announce.downloaded ?? 0}`,
      `left=${announce.left ?? 0}`,
      "compact=1",
      ...(announce.event === "" ? [] : [`event=${announce.event ?? "started"}`]),
    ];
    const response = await fetch(`http://127.0.0.1:${this.trackerPort}/announce/${passkeyOf(user)}?${query.join("&")}`);
    return !(await response.text()).includes("failure reason");
  }

  /** A member's token, as a site signs it. */
  token(user: number, lifeS = 3600): string {
    const now = Math.floor(Date.now() / 1000);
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const unsigned = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ sub: String(user), iat: now, exp: now + lifeS })}`;
    return `${unsigned}.${createHmac("sha256", SECRET).update(unsigned).digest("base64url")}`;
  }

  private flags(): string[] {
    const set = Object.entries(this.settings).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
    return ["--data", join(this.folder, "data"), ...set];
  }
}

export function passkeyOf(user: number): string {
  return `${user}`.padStart(32, "0");
}

export function infohashOf(torrent: number): string {
  return torrent.toString(16).padStart(40, "ab");
}

/** Without settings of other servers. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ROLLCALL_") && !/^(REDIS|DB|DATABASE)_/.test(name)));
}
