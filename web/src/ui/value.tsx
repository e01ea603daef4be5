// Single values: rounded text, exact value on hover.
import { useComputed } from "@preact/signals";
import { nowS } from "../clock";
import * as format from "../format";
import { clientName, clipped, visible } from "../names";

export function Bytes(props: { value: format.Whole | null | undefined }) {
  return (
    <span class="number" title={format.bytesExact(props.value)}>
      {format.bytes(props.value)}
    </span>
  );
}

export function Count(props: { value: format.Whole | null | undefined }) {
  return (
    <span class="number" title={format.countExact(props.value)}>
      {format.count(props.value)}
    </span>
  );
}

/** Per second; with `bytes`, bytes per second. */
export function Rate(props: { value: number | null | undefined; bytes?: boolean }) {
  const exact = props.value === null || props.value === undefined ? "" : `${format.countExact(props.value)}${props.bytes ? " B" : ""}/s`;
  return (
    <span class="number" title={exact}>
      {props.bytes ? format.byteRate(props.value) : format.rate(props.value)}
    </span>
  );
}

/** Relative time; absolute on hover. `at` is in seconds since 1970. */
export function Time(props: { at?: number | null | undefined; atMs?: number | null | undefined }) {
  const at = props.at ?? (props.atMs === null || props.atMs === undefined ? null : props.atMs / 1000);
  if (at === null) return <span>{format.NOTHING}</span>;
  return <Moment key={at} at={at} />;
}

function Moment(props: { at: number }) {
  // Rendered only when the text changes: a page may show hundreds.
  const text = useComputed(() => format.relative(props.at, nowS.value));
  const date = new Date(props.at * 1000);
  return (
    <time class="number" dateTime={Number.isNaN(date.getTime()) ? undefined : date.toISOString()} title={format.absolute(props.at)}>
      {text}
    </time>
  );
}

export function Duration(props: { s: number | null | undefined }) {
  return (
    <span class="number" title={props.s === null || props.s === undefined ? "" : `${format.countExact(props.s)} s`}>
      {format.duration(props.s)}
    </span>
  );
}

const NAME_CHARACTERS = 160;
const TITLE_CHARACTERS = 2000;

/** Text written by users: control characters made visible, length limited. */
export function Name(props: { text: string | null | undefined; most?: number; wrap?: boolean }) {
  if (props.text === null || props.text === undefined || props.text === "") return <span class="dim">{format.NOTHING}</span>;
  const whole = visible(clipped(props.text, TITLE_CHARACTERS));
  return (
    <bdi class={props.wrap ? "name name-wrap" : "name"} title={whole}>
      {clipped(whole, props.most ?? NAME_CHARACTERS)}
    </bdi>
  );
}

/** Shortened; full on hover. */
export function Infohash(props: { value: string; whole?: boolean }) {
  return (
    <code class="hash" title={props.value}>
      {props.whole ? props.value : `${props.value.slice(0, 10)}…`}
    </code>
  );
}

/** Client program by peer id or prefix. */
export function ClientName(props: { peerId?: string | null; prefix?: string | null }) {
  const id = props.peerId ?? props.prefix ?? "";
  if (!id) return <span class="dim">{format.NOTHING}</span>;
  return (
    <span class="name" title={visible(id)}>
      {clientName(id)}
    </span>
  );
}
