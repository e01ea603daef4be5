// Single values: short to read, exact on hover.
import { useComputed } from "@preact/signals";
import { nowS } from "../clock";
import * as format from "../format";
import { clientName, clipped, visible } from "../names";

/** An amount of bytes. */
export function Bytes(props: { value: format.Whole | null | undefined }) {
  return (
    <span class="number" title={format.bytesExact(props.value)}>
      {format.bytes(props.value)}
    </span>
  );
}

/** How many. */
export function Count(props: { value: format.Whole | null | undefined }) {
  return (
    <span class="number" title={format.countExact(props.value)}>
      {format.count(props.value)}
    </span>
  );
}

/** How many a second; with `bytes`, of bytes. */
export function Rate(props: { value: number | null | undefined; bytes?: boolean }) {
  const exact = props.value === null || props.value === undefined ? "" : `${format.countExact(props.value)}${props.bytes ? " B" : ""}/s`;
  return (
    <span class="number" title={exact}>
      {props.bytes ? format.byteRate(props.value) : format.rate(props.value)}
    </span>
  );
}

/** A moment, in seconds since 1970 (or `atMs`): how long ago, and the absolute on hover. */
export function Time(props: { at?: number | null | undefined; atMs?: number | null | undefined }) {
  const at = props.at ?? (props.atMs === null || props.atMs === undefined ? null : props.atMs / 1000);
  if (at === null) return <span>{format.NOTHING}</span>;
  return <Moment key={at} at={at} />;
}

function Moment(props: { at: number }) {
  // Only a change of the text renders anything: a page may show hundreds of these.
  const text = useComputed(() => format.relative(props.at, nowS.value));
  const date = new Date(props.at * 1000);
  return (
    <time class="number" dateTime={Number.isNaN(date.getTime()) ? undefined : date.toISOString()} title={format.absolute(props.at)}>
      {text}
    </time>
  );
}

/** How long. */
export function Duration(props: { s: number | null | undefined }) {
  return (
    <span class="number" title={props.s === null || props.s === undefined ? "" : `${format.countExact(props.s)} s`}>
      {format.duration(props.s)}
    </span>
  );
}

const NAME_CHARACTERS = 160;
const TITLE_CHARACTERS = 2000;

/** Text that somebody wrote: as text, whatever is in it, and not too much of it. */
export function Name(props: { text: string | null | undefined; most?: number; wrap?: boolean }) {
  if (props.text === null || props.text === undefined || props.text === "") return <span class="dim">{format.NOTHING}</span>;
  const whole = visible(clipped(props.text, TITLE_CHARACTERS));
  return (
    <bdi class={props.wrap ? "name name-wrap" : "name"} title={whole}>
      {clipped(whole, props.most ?? NAME_CHARACTERS)}
    </bdi>
  );
}

/** An infohash: the beginning, and the whole on hover. */
export function Infohash(props: { value: string; whole?: boolean }) {
  return (
    <code class="hash" title={props.value}>
      {props.whole ? props.value : `${props.value.slice(0, 10)}…`}
    </code>
  );
}

/** A client by its peer id, or by the beginning of one. */
export function ClientName(props: { peerId?: string | null; prefix?: string | null }) {
  const id = props.peerId ?? props.prefix ?? "";
  if (!id) return <span class="dim">{format.NOTHING}</span>;
  return (
    <span class="name" title={visible(id)}>
      {clientName(id)}
    </span>
  );
}
