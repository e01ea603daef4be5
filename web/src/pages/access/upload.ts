// Uploads of a whitelist or a torrent. They are not JSON and may take minutes, so they bypass the API client and its
// time limit.
import type { Torrent } from "../../api/types";
import { Problem } from "../../api/client";
import { session } from "../../session";

export async function uploadWhitelist(file: Blob): Promise<{ before: number; after: number }> {
  return read(await send("PUT", "/api/v1/whitelist", "text/plain", file));
}

export async function uploadTorrent(file: Blob, options: { approved: boolean; allowPublic: boolean }): Promise<Torrent> {
  const query = new URLSearchParams({ approved: String(options.approved), allow_public: String(options.allowPublic) });
  return read(await send("POST", `/api/v1/torrents/file?${query}`, "application/octet-stream", file));
}

async function read<T>(response: Response): Promise<T> {
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body as T;
  const problem = (body ?? {}) as { code?: string; detail?: string };
  throw new Problem(response.status, problem.code ?? `http_${response.status}`, problem.detail ?? response.statusText);
}

async function send(method: string, path: string, type: string, file: Blob): Promise<Response> {
  try {
    return await fetch(path, {
      method,
      headers: { accept: "application/json", "content-type": type, "x-csrf-token": session.value?.csrf ?? "" },
      credentials: "same-origin",
      body: file,
    });
  } catch {
    throw new Problem(0, "unreachable", "the server does not answer");
  }
}
