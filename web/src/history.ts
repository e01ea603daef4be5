// The last hour, ending with the latest overview, so that charts end with the figures shown beside them.
import { api } from "./api/client";
import type { HistoryPoint, Overview } from "./api/types";
import { overview, reconnects } from "./live";
import { useResource, type Resource } from "./resource";

const EVERY_MS = 10_000;

/** Oldest first. */
export function useHistory(): Resource<HistoryPoint[]> {
  const history = useResource(`history ${reconnects.value}`, (signal) => api.get("/api/v1/overview/history", { signal }), { everyMs: EVERY_MS });
  const now = overview.value;
  const points = history.data?.points;
  return { ...history, data: points && (now ? withNow(points, now) : points) };
}

export function withNow(points: readonly HistoryPoint[], now: Overview): HistoryPoint[] {
  const at = Math.floor(now.at_ms / 1000);
  const before = points.filter((point) => point.at < at);
  return [
    ...before,
    {
      at,
      online: now.presence?.online ?? null,
      seeders: now.tracker?.seeders ?? null,
      leechers: now.tracker?.leechers ?? null,
      announces_per_s: now.tracker?.announces_per_s ?? null,
      upload_bytes_per_s: now.tracker?.upload_bytes_per_s ?? null,
      download_bytes_per_s: now.tracker?.download_bytes_per_s ?? null,
      connects_per_s: now.gateway?.connects_per_s ?? null,
      disconnects_per_s: now.gateway?.disconnects_per_s ?? null,
      lag: Object.fromEntries((now.journal?.views ?? []).map((view) => [view.view, view.lag])),
    },
  ];
}
