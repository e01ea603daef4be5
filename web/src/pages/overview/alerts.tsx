// What wants an operator: what it is, since when, and what to do.
//
// The server writes what to do in English. For what we know by its code there are words here in both languages; the
// server's own stay beside them, because they name the figures and the cause.
import type { Alert } from "../../api/types";
import { duration } from "../../format";
import { language, texts } from "../../i18n";
import { connection, dataAgeS } from "../../live";
import { Badge, Card, Time } from "../../ui";
import { t } from "./texts";

const names = texts({
  en: {
    dependency_failing: (subject: string) => `The dependency ${subject} fails`,
    journal_status_stale: () => "The journal status is not known",
    journal_too_long: () => "The journal is too long",
    dead_letters: () => "Dead letters wait",
    failed_entries: () => "Entries failed",
    view_paused: (subject: string) => `The view ${subject} is paused`,
    view_lagging: (subject: string) => `The view ${subject} lags`,
    webhooks_late: () => "Webhooks are late",
  },
  zh: {
    dependency_failing: (subject) => `${subject} 无法工作`,
    journal_status_stale: () => "无法获知日志状态",
    journal_too_long: () => "日志过长",
    dead_letters: () => "有死信等待处理",
    failed_entries: () => "有条目已失败",
    view_paused: (subject) => `视图 ${subject} 已暂停`,
    view_lagging: (subject) => `视图 ${subject} 落后`,
    webhooks_late: () => "Webhook 投递延迟",
  },
});

// For English the server's own words say all of this, and more exactly.
const ADVICE_ZH: Record<string, string> = {
  dependency_failing: "请检查该组件；rollcall doctor 会给出更多信息。",
  journal_status_stale: "滞后、长度与暂停状态未知。请检查 Redis，或数据目录所在的磁盘。",
  journal_too_long: "不会丢弃任何条目，但请找出落后或暂停的读取方。",
  dead_letters: "它们会自动重试。如果一直存在，请在“流水线”中查看原因。",
  failed_entries: "它们没有计入任何账目：排除原因后在“流水线”中重放，或丢弃。",
  view_paused: "请在“流水线”中恢复它。",
  view_lagging: "请检查承担该角色的进程是否在运行，以及它的存储是否缓慢。",
  webhooks_late: "请检查 gateway.webhook_url 是否响应。",
};

// Alerts that the Pipeline page explains.
const PIPELINE = new Set(["journal_status_stale", "journal_too_long", "dead_letters", "failed_entries", "view_paused", "view_lagging"]);

/** What wants an operator; one quiet line when nothing does, and another one while that is not known. */
export function Alerts(props: { alerts: readonly Alert[] }) {
  const { alerts } = props;
  const isAway = connection.value === "away";
  return (
    <>
      {isAway && <p class="not-known">{t.notKnown(duration(dataAgeS()))}</p>}
      {/* Told once when it changes; the list itself changes with every minute that an alert grows older. */}
      <p class={alerts.length === 0 && !isAway ? "all-well" : "visually-hidden"} role="status">
        {alerts.length > 0 ? alerts.map(headline).join(". ") : isAway ? "" : t.allWell}
      </p>
      {alerts.length > 0 && (
        <Card title={t.alerts} flush>
          <ul class="alerts">
            {alerts.map((alert) => (
              <AlertRow key={`${alert.code} ${alert.subject ?? ""}`} alert={alert} />
            ))}
          </ul>
        </Card>
      )}
    </>
  );
}

function AlertRow(props: { alert: Alert }) {
  const { alert } = props;
  const tone = alert.severity === "critical" ? "bad" : "warn";
  const isChinese = language.value === "zh";
  return (
    <li class={`tone-${tone}`}>
      <div class="alert-head">
        <Badge tone={tone}>{t[alert.severity]}</Badge>
        <h3>{headline(alert)}</h3>
        <span class="dim">
          <Time at={alert.since} />
        </span>
      </div>
      <p>
        {isChinese && ADVICE_ZH[alert.code] && <>{ADVICE_ZH[alert.code]} </>}
        <span class={isChinese ? "dim" : ""} lang="en">
          {alert.detail}
        </span>{" "}
        {isChinese && alert.affected.length > 0 && <>受影响：{alert.affected.join("、")}。 </>}
        {PIPELINE.has(alert.code) && <a href="#/pipeline">{t.toPipeline} →</a>}
      </p>
    </li>
  );
}

function headline(alert: Alert): string {
  const known = alert.code in names ? names[alert.code as keyof typeof names] : null;
  return known ? known(alert.subject ?? "") : alert.code.replaceAll("_", " ");
}
