// Parts, their sum, and the account.
import type { ComponentChildren } from "preact";
import type { Figures } from "../../api/types";
import { Bytes } from "../../ui";
import { bytesOf, parseSums, sumOf, type ByteSums } from "./sums";
import { t } from "./texts";

export interface SumLine extends ByteSums {
  readonly key: string;
  readonly label: ComponentChildren;
  readonly hint?: string | undefined;
}

export function SumTable(props: { lines: readonly SumLine[]; figures: Figures }) {
  const { lines, figures } = props;
  const raw = parseSums(figures);
  const bonus = {
    uploaded: bytesOf(figures.credited_uploaded) - raw.uploaded,
    downloaded: bytesOf(figures.credited_downloaded) - raw.downloaded,
  };
  const credited = { uploaded: raw.uploaded + bonus.uploaded, downloaded: raw.downloaded + bonus.downloaded };
  return (
    <div class="table-frame">
      <table class="sums">
        <caption class="visually-hidden">{t.whyTitle}</caption>
        <thead>
          <tr>
            <td />
            <th scope="col">{t.uploaded}</th>
            <th scope="col">{t.downloaded}</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => <Line key={line.key} label={line.label} hint={line.hint} moved={line} />)}
        </tbody>
        <tbody class="sums-total">
          <Line label={t.sum} moved={sumOf(lines)} />
          <Line label={t.accountTotal} moved={raw} />
        </tbody>
        <tbody>
          <Line label={t.multipliers} hint={t.multipliersHint} moved={bonus} />
          <Line label={t.credited} moved={credited} />
        </tbody>
      </table>
    </div>
  );
}

function Line(props: { label: ComponentChildren; hint?: string | undefined; moved: ByteSums }) {
  return (
    <tr>
      <th scope="row">
        {props.label}
        {props.hint && <span class="sums-hint">{props.hint}</span>}
      </th>
      <td><Bytes value={props.moved.uploaded} /></td>
      <td><Bytes value={props.moved.downloaded} /></td>
    </tr>
  );
}
