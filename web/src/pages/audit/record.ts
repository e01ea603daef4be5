// Audit records, prepared for display.
import { link } from "../../router";

/** Kinds of actions: the part before the dot. */
export const KINDS: readonly string[] = [
  "client",
  "dlq",
  "failed",
  "friend",
  "journal",
  "key",
  "multiplier",
  "passkey",
  "port",
  "privacy",
  "session",
  "token",
  "torrent",
  "user",
  "view",
];

/** `user` of `user.add` and of `user.`. */
export function kindOf(action: string): string {
  const dot = action.indexOf(".");
  return dot < 0 ? action : action.slice(0, dot);
}

/** Names and values as text; nested names are joined: `terms.note`. */
export function detailsOf(details: unknown, within = ""): [name: string, value: string][] {
  if (typeof details !== "object" || details === null) return [];
  return Object.entries(details).flatMap(([key, value]): [string, string][] => {
    const name = within + key;
    if (Array.isArray(value)) return [[name, value.map(plain).join(", ")]];
    if (typeof value === "object" && value !== null) return detailsOf(value, `${name}.`);
    return [[name, plain(value)]];
  });
}

function plain(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Whether a detail is a time in seconds since 1970. */
export function isTime(name: string, value: string): boolean {
  return name.endsWith("_at") && /^[1-9]\d{8,9}$/.test(value);
}

/** The page of a subject, if it has one. */
export function hrefOf(subjectType: string, subjectId: string): string | null {
  if (subjectType === "user" && /^[1-9]\d*$/.test(subjectId)) return link(`/users/${subjectId}`);
  if (subjectType === "torrent" && /^([1-9]\d*|[0-9a-f]{40})$/.test(subjectId)) return link(`/swarms/${subjectId}`);
  if (subjectType === "view") return link("/pipeline");
  if (subjectType === "key") return link("/access/keys");
  return null;
}
