// Disconnects by cause since the process started, most frequent first.
import { percent } from "../../format";
import { translate } from "../../i18n";
import { Card, Count, Empty } from "../../ui";
import { disconnectNames, t } from "./texts";

export function Disconnects(props: { counts: readonly { cause: string; count: number }[] }) {
  const known = props.counts.filter((one) => one.count > 0).sort((a, b) => b.count - a.count);
  const all = known.reduce((sum, one) => sum + one.count, 0);
  const most = known[0]?.count ?? 1;
  return (
    <Card title={t.causes}>
      {known.length === 0 ? (
        <Empty title={t.causesNone} />
      ) : (
        <>
          <ul class="causes">
            {known.map((one) => (
              <li key={one.cause} title={`${one.cause}: ${percent(one.count / all, 1)}`}>
                <span class="cause-name">{translate(disconnectNames, one.cause)}</span>
                <Count value={one.count} />
                <span class="cause-bar" aria-hidden="true" style={{ width: `${Math.max(1, (100 * one.count) / most)}%` }} />
              </li>
            ))}
          </ul>
          <p class="dim">{t.causesHint}</p>
        </>
      )}
    </Card>
  );
}
