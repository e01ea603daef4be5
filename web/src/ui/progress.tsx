// Progress bar with its number.
import "./progress.css";
import * as format from "../format";

/** From 0 to 1; `none` is the text for an unknown value. */
export function Progress(props: { share: number | null; label: string; none: string; title?: string | undefined }) {
  if (props.share === null) return <span class="dim">{props.none}</span>;
  const percent = format.percent(props.share, props.share < 1 ? 1 : 0);
  return (
    <span class="progress" title={props.title ?? percent}>
      <progress class={props.share >= 1 ? "progress-bar whole" : "progress-bar"} value={props.share} max={1} aria-label={props.label}>
        {percent}
      </progress>
      <span class="number">{percent}</span>
    </span>
  );
}
