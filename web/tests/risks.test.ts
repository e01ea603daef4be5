import { afterEach, describe, expect, it } from "vitest";
import type { RiskEvent } from "../src/api/types";
import { setLanguage } from "../src/i18n";
import { RISK_KINDS, riskKind, riskSentence } from "../src/pages/users/risk-texts";

const RISK: RiskEvent = {
  id: "1-0",
  kind: "client_rate",
  user: 7,
  torrent: 1,
  infohash: "ab".repeat(20),
  peer_id: "cd".repeat(20),
  at: 1_700_000_000,
  elapsed_s: 1800,
  uploaded_claimed: String(5 * 1024 ** 3),
  uploaded_credited: "0",
  downloaded_claimed: String(2 * 1024 ** 3),
  downloaded_credited: String(1024 ** 2),
  ceiling_bytes_per_s: String(125 * 1024 ** 2),
  count: 12,
  unreported: 0,
};

afterEach(() => setLanguage("en"));

describe("a risk event", () => {
  it("has a sentence per kind in both languages", () => {
    for (const language of ["en", "zh"] as const) {
      setLanguage(language);
      const said = RISK_KINDS.map((kind) => `${riskKind(kind)}: ${riskSentence({ ...RISK, kind })}`);
      expect(new Set(said).size).toBe(RISK_KINDS.length);
      for (const sentence of said) expect(sentence).not.toMatch(/undefined|NaN|: $/);
    }
  });

  it("has the figures of its kind", () => {
    expect(riskSentence({ ...RISK, kind: "upload_without_leechers" })).toMatch(/5\.00 GiB.*30.*0 B/);
    expect(riskSentence({ ...RISK, kind: "left_without_download" })).toMatch(/2\.00 GiB.*1\.00 MiB/);
    expect(riskSentence({ ...RISK, kind: "shared_address" })).toContain("At least 12 users");
    expect(riskSentence({ ...RISK, kind: "many_peer_ids" })).toContain("12 peer ids");
  });

  it("of an unknown kind is shown by name", () => {
    const risk = { ...RISK, kind: "later_kind" as never };
    expect([riskKind(risk.kind), riskSentence(risk)]).toEqual(["later_kind", ""]);
  });
});
