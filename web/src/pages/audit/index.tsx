// The Audit page: all changes, newest first, and the verification of the hash chain.
import { useState } from "preact/hooks";
import { api, asProblem, type Problem } from "../../api/client";
import type { AuditVerification } from "../../api/types";
import { useResource } from "../../resource";
import type { PageProps } from "../../router";
import { can } from "../../session";
import { Badge, Button, Card, CopyButton, Empty, Facts, Failure, Loading, Name, Page, Time } from "../../ui";
import { Records } from "./records";
import { t } from "./texts";
import "./audit.css";

export default function Audit(props: PageProps) {
  const [newest, setNewest] = useState<string | null>(null);
  return (
    <Page title={t.title} lead={t.intro}>
      {can("admin") ? (
        <>
          <Chain newest={newest} />
          <Records action={props.query.get("action") ?? ""} onNewest={setNewest} />
        </>
      ) : (
        <Empty title={t.needAdmin} />
      )}
    </Page>
  );
}

interface Verification {
  verdict: AuditVerification;
  atS: number;
}

// Verification reads the whole trail: it runs once when the page is opened, and then on request.
function Chain(props: { newest: string | null }) {
  const check = useResource("audit verify", async (signal): Promise<Verification> => {
    const verdict = await api.get("/api/v1/audit/verify", { signal });
    return { verdict, atS: Math.floor(Date.now() / 1000) };
  });
  const [repeated, setRepeated] = useState<{ done: Verification } | { problem: Problem } | null>(null);
  const repeat = async () => {
    try {
      const verdict = await api.get("/api/v1/audit/verify");
      setRepeated({ done: { verdict, atS: Math.floor(Date.now() / 1000) } });
    } catch (thrown) {
      setRepeated({ problem: asProblem(thrown) });
    }
  };
  const problem = repeated && "problem" in repeated ? repeated.problem : check.error;
  const known = repeated && "done" in repeated ? repeated.done : check.data;
  const button = (
    <Button small onClick={repeat}>
      {t.verify}
    </Button>
  );
  return (
    <Card title={t.chain} actions={button}>
      <div aria-live="polite">
        {problem ? <Failure problem={problem} /> : known ? <VerificationResult checked={known} newest={props.newest} /> : <Checking />}
      </div>
    </Card>
  );
}

function Checking() {
  return (
    <>
      <p>{t.checking}</p>
      <Loading rows={1} />
    </>
  );
}

function VerificationResult(props: { checked: Verification; newest: string | null }) {
  const { verdict, atS } = props.checked;
  const last = verdict.last_hash ?? props.newest;
  const isEmpty = verdict.valid && verdict.records === 0;
  return (
    <div class={`chain tone-${verdict.valid ? "ok" : "bad"}`}>
      <span class="chain-mark" aria-hidden="true">
        {verdict.valid ? "✓" : "✕"}
      </span>
      <div class="stack-small">
        <p class="chain-title">{isEmpty ? t.empty : verdict.valid ? t.holds : t.broken}</p>
        <p>{isEmpty ? t.emptyBody : verdict.valid ? t.holdsBody(verdict.records) : t.brokenBody}</p>
        {!verdict.valid && <Facts items={faultOf(verdict)} />}
        <p class="dim">
          {t.checkedAt} <Time at={atS} />
        </p>
        {verdict.valid && !isEmpty && last && (
          <details>
            <summary class="dim">{t.newest}</summary>
            <p class="dim">{t.limits}</p>
            <p class="wrap">
              <code>{last}</code> <CopyButton text={last} />
            </p>
          </details>
        )}
      </div>
    </div>
  );
}

function faultOf(verdict: AuditVerification): [string, preact.ComponentChildren][] {
  const facts: [string, preact.ComponentChildren][] = [];
  if (verdict.broken_at !== undefined && verdict.broken_at !== null) facts.push([t.brokenAt, <Badge tone="bad">{verdict.broken_at}</Badge>]);
  if (verdict.reason) facts.push([t.brokenWhy, <Name text={verdict.reason} wrap most={500} />]);
  return facts;
}
