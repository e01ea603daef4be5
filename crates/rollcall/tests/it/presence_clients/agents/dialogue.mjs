// How a test speaks to a program of its own: commands come as lines of JSON, `{"id":1,"do":"rpc",...}`; what is answered
// and what happens goes out the same way, `{"id":1,"ok":...}`, `{"id":1,"error":{...}}`, `{"event":"connected",...}`.
import { createHmac } from "node:crypto";
import { createInterface } from "node:readline";

/** Tells the test that something has happened. */
export function tell(event, details = {}) {
  process.stdout.write(`${JSON.stringify({ event, ...details })}\n`);
}

/** Carries out commands by name until the test has no more. */
export function serve(commands) {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (line) => {
    const { id, do: name, ...details } = JSON.parse(line);
    let answer;
    try {
      const result = await commands[name](details);
      answer = { id, ok: result ?? null };
    } catch (error) {
      answer = { id, error: { code: error?.code ?? 0, message: String(error?.message ?? error) } };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  });
  lines.on("close", () => process.exit(0));
}

/** A token as a site's own back end would sign it (HS256). */
export function sign({ secret, user, ttl_s, claims }) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = Math.floor(Date.now() / 1000);
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part({ ...claims, sub: user, exp: now + (ttl_s ?? 3600) })}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}
