// The member's ratio and figures.
import type { Me } from "../../api/types";
import * as format from "../../format";
import { Bytes, Card, Count, Duration, Empty, Facts } from "../../ui";
import { t } from "./texts";

export function RatioCard(props: { mine: Me }) {
  const { figures, ratio, hit_and_runs } = props.mine;
  if (!figures) {
    return (
      <Card title={t.ratio}>
        <Empty title={t.noFigures} />
      </Card>
    );
  }
  return (
    <Card title={t.ratio}>
      <div class="member-ratio">
        <p class="ratio-figure">{ratio === null ? "∞" : format.ratio(ratio)}</p>
        <Facts
          items={[
            [t.uploaded, <Amount raw={figures.uploaded} credited={figures.credited_uploaded} />],
            [t.downloaded, <Amount raw={figures.downloaded} credited={figures.credited_downloaded} />],
            [t.seedingTime, <Duration s={figures.seeding_s} />],
            [t.completed, <Count value={figures.completed} />],
          ]}
        />
      </div>
      {ratio === null && <p class="dim">{t.noRatio}</p>}
      <p class={hit_and_runs > 0 ? "owing" : "dim"}>{hit_and_runs > 0 ? `▲ ${t.hitAndRuns(format.countExact(hit_and_runs))}` : t.noHitAndRuns}</p>
    </Card>
  );
}

/** Credited bytes and, if different, raw bytes. */
function Amount(props: { raw: string; credited: string }) {
  return (
    <span>
      <Bytes value={props.credited} />
      {props.raw !== props.credited && <span class="dim" title={format.bytesExact(props.raw)}> ({t.raw(format.bytes(props.raw))})</span>}
    </span>
  );
}
