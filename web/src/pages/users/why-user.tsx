// The figures of a user as the sum of the accounts.
//
// Accounts are read in pages while announces are counted. So the figures are read before and after; a difference is
// reported only if they are equal.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Account, Figures } from "../../api/types";
import { useResource } from "../../resource";
import { Button, Card, Failure, Loading } from "../../ui";
import { WhyLink } from "./figures";
import { SumTable, type SumLine } from "./sum-table";
import { isSame, parseSums, sumOf, verdictOf, type ByteSums, type Verdict } from "./sums";
import { t } from "./texts";
import { TorrentName, torrentText } from "./torrent-name";


const ACCOUNTS_A_PAGE = 1000;
const PAGES_MAX = 20;
const ATTEMPTS_MAX = 4;
/** The largest are shown first. All are in the sum. */
const LINES = 20;

interface Read {
  accounts: Account[];
  isComplete: boolean;
  before: Figures | null;
  after: Figures | null;
}

export function WhyUser(props: { user: number; refreshed(): void }) {
  const { user } = props;
  const read = useResource(String(user), (signal) => readAll(user, signal));
  const refresh = () => {
    read.refresh();
    props.refreshed();
  };
  return (
    <Card title={t.whyTitle} actions={<Button small onClick={refresh}>{t.refresh}</Button>}>
      <p class="dim">{t.whyLead}</p>
      {read.error && <Failure problem={read.error} retry={read.refresh} />}
      {read.loading && <Loading rows={4} />}
      {read.data && <Sum user={user} read={read.data} />}
    </Card>
  );
}

function Sum(props: { user: number; read: Read }) {
  const { accounts, before, after, isComplete } = props.read;
  const [shown, setShown] = useState(LINES);
  if (!before || !after) return <p class="note">{t.neverAnnounced}</p>;
  const sum = sumOf(accounts.map((account) => parseSums(account.figures)));
  const verdict = verdictOf(sum, parseSums(before), parseSums(after), isComplete);
  const ordered = accounts.map((account): [Account, ByteSums] => [account, parseSums(account.figures)]).sort(([, one], [, other]) => compare(other, one));
  const lines = ordered.slice(0, shown).map(([account, moved]): SumLine => ({ key: String(account.torrent), label: <AccountLabel user={props.user} account={account} />, ...moved }));
  const others = ordered.slice(shown);
  if (others.length > 0) lines.push({ key: "others", label: t.otherTorrents(others.length), ...sumOf(others.map(([, moved]) => moved)) });
  return (
    <>
      <SumTable lines={lines} figures={isSame(sum, parseSums(before)) ? before : after} />
      {others.length > 0 && <p class="why-filter"><Button small onClick={() => setShown(shown + 10 * LINES)}>{t.showOthers}</Button></p>}
      <p class={`verdict verdict-${verdict}`} role="status">{resultText(verdict, accounts.length)}</p>
    </>
  );
}

function AccountLabel(props: { user: number; account: Account }) {
  const { user, account } = props;
  return (
    <span class="client-label">
      <TorrentName {...account} /> <WhyLink user={user} torrent={account.torrent} label={t.whyTorrent(torrentText(account))} />
    </span>
  );
}

function resultText(verdict: Verdict, count: number): string {
  const texts: Record<Verdict, string> = { exact: `✓ ${t.exact}`, unread: t.tooMany(count), moving: t.moving, differs: t.differs };
  return texts[verdict];
}

function compare(one: ByteSums, other: ByteSums): number {
  const [a, b] = [one.uploaded + one.downloaded, other.uploaded + other.downloaded];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Repeated while announces are counted in between. */
async function readAll(user: number, signal: AbortSignal): Promise<Read> {
  for (let attempt = 1; ; attempt += 1) {
    const before = await figuresOf(user, signal);
    const { accounts, isComplete } = await accountsOf(user, signal);
    const read = { accounts, isComplete, before, after: await figuresOf(user, signal) };
    if (attempt === ATTEMPTS_MAX || !isComplete || !isMoving(read)) return read;
  }
}

function isMoving({ accounts, before, after }: Read): boolean {
  // The first announce came in between.
  if (!before || !after) return before !== after;
  const sum = sumOf(accounts.map((account) => parseSums(account.figures)));
  return verdictOf(sum, parseSums(before), parseSums(after), true) === "moving";
}

async function figuresOf(user: number, signal: AbortSignal): Promise<Figures | null> {
  return (await api.get("/api/v1/users/{id}", { path: { id: user }, signal })).figures ?? null;
}

async function accountsOf(user: number, signal: AbortSignal): Promise<{ accounts: Account[]; isComplete: boolean }> {
  const accounts: Account[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { items, next } = await api.get("/api/v1/users/{id}/torrents", { path: { id: user }, query: { limit: ACCOUNTS_A_PAGE, cursor }, signal });
    accounts.push(...items);
    if (next == null) return { accounts, isComplete: true };
    cursor = next;
  }
  return { accounts, isComplete: false };
}
