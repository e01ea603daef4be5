// A whole whitelist on its way to the server. It is a text of any length, not JSON, and may take minutes: so it goes past
// the API client, with the same proof of who asks.
import { Problem } from "../../api/client";
import { session } from "../../session";

/** Replaces the whitelist by what is in the file. */
export async function uploadWhitelist(file: Blob): Promise<{ before: number; after: number }> {
  const response = await send(file);
  const said: unknown = await response.json().catch(() => null);
  if (response.ok) return said as { before: number; after: number };
  const problem = (said ?? {}) as { code?: string; detail?: string };
  throw new Problem(response.status, problem.code ?? `http_${response.status}`, problem.detail ?? response.statusText);
}

async function send(file: Blob): Promise<Response> {
  try {
    return await fetch("/api/v1/whitelist", {
      method: "PUT",
      headers: { accept: "application/json", "content-type": "text/plain", "x-csrf-token": session.value?.csrf ?? "" },
      credentials: "same-origin",
      body: file,
    });
  } catch {
    throw new Problem(0, "unreachable", "the server does not answer");
  }
}
