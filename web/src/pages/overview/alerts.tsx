// Current alerts: what failed, since when, and what to do.
//
// The server writes the detail in English. In Chinese it is composed here from the alert's code and the overview.
import type { Alert, Overview } from "../../api/types";
import { count, duration } from "../../format";
import { language, texts } from "../../i18n";
import { connection, dataAgeS } from "../../live";
import { componentName } from "../../server-texts";
import { Badge, Card, Time } from "../../ui";
import { t } from "./texts";

const names = texts({
  en: {
    dependency_failing: (subject: string) => `The dependency ${subject} fails`,
    journal_status_stale: () => "The journal status is unknown",
    journal_too_long: () => "The journal is too long",
    dead_letters: () => "There are dead letters",
    failed_entries: () => "Entries failed",
    view_paused: (subject: string) => `The view ${subject} is paused`,
    view_lagging: (subject: string) => `The view ${subject} lags`,
    webhooks_late: () => "Webhooks are late",
  },
  zh: {
    dependency_failing: (subject) => `${subject}无法工作`,
    journal_status_stale: () => "流量日志状态未知",
    journal_too_long: () => "流量日志过长",
    dead_letters: () => "有死信等待处理",
    failed_entries: () => "有记录已失败",
    view_paused: (subject) => `视图“${subject}”已暂停`,
    view_lagging: (subject) => `视图“${subject}”滞后`,
    webhooks_late: () => "Webhook 投递延迟",
  },
});

const DETAILS_ZH: Record<string, (alert: Alert, now: Overview) => string> = {
  dependency_failing: (alert, now) => {
    const reason = now.health.find((one) => one.name === alert.subject)?.reason;
    return `${reason ? `错误：${reason}。` : ""}请检查该组件；rollcall doctor 会给出更多信息。`;
  },
  journal_status_stale: () => "长度、滞后与暂停状态未知。请检查 Redis，或数据目录所在的磁盘。",
  journal_too_long: (_, now) => `现有 ${count(now.journal?.entries ?? 0)} 条记录，超过 journal.length_alarm。不会丢弃任何记录，但请找出滞后或暂停的消费者。`,
  dead_letters: (_, now) => `共 ${count(now.journal?.dlq ?? 0)} 条，会自动重试。如果一直存在，请在“流水线”中查看原因。`,
  failed_entries: (_, now) => `共 ${count(now.journal?.failed ?? 0)} 条，没有计入任何账目。排除原因后在“流水线”中重放，或丢弃。`,
  view_paused: (alert, now) => `滞后 ${count(viewOf(alert, now)?.lag ?? 0)} 条记录。请在“流水线”中恢复它。`,
  view_lagging: (alert, now) => `落后 ${duration(viewOf(alert, now)?.behind_s ?? 0)}。请检查承担该角色的进程是否在运行，以及它的存储是否缓慢。`,
  webhooks_late: (_, now) => `${count(now.gateway?.webhooks_waiting ?? 0)} 个尚未投递。请检查 gateway.webhook_url 是否响应。`,
};

function viewOf(alert: Alert, now: Overview) {
  return now.journal?.views.find((view) => view.view === alert.subject);
}

// Alerts that the Pipeline page explains.
const PIPELINE = new Set(["journal_status_stale", "journal_too_long", "dead_letters", "failed_entries", "view_paused", "view_lagging"]);

export function Alerts(props: { now: Overview }) {
  const { alerts } = props.now;
  const isOutdated = connection.value === "unreachable";
  return (
    <>
      {isOutdated && <p class="outdated">{t.outdated(duration(dataAgeS()))}</p>}
      {/* Announced once by screen readers; the list below changes every minute. */}
      <p class={alerts.length === 0 && !isOutdated ? "no-alerts" : "visually-hidden"} role="status">
        {alerts.length > 0 ? alerts.map(headline).join(". ") : isOutdated ? "" : t.noAlerts}
      </p>
      {alerts.length > 0 && (
        <Card title={t.alerts} flush>
          <ul class="alerts">
            {alerts.map((alert) => (
              <AlertRow key={`${alert.code} ${alert.subject ?? ""}`} alert={alert} now={props.now} />
            ))}
          </ul>
        </Card>
      )}
    </>
  );
}

function AlertRow(props: { alert: Alert; now: Overview }) {
  const { alert } = props;
  const tone = alert.severity === "critical" ? "bad" : "warn";
  const chinese = language.value === "zh" ? DETAILS_ZH[alert.code] : undefined;
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
        {chinese ? chinese(alert, props.now) : <span lang="en">{alert.detail}</span>}{" "}
        {chinese && alert.affected.length > 0 && <>受影响：{alert.affected.map(componentName).join("、")}。 </>}
        {PIPELINE.has(alert.code) && <a href="#/pipeline">{t.toPipeline} →</a>}
      </p>
    </li>
  );
}

function headline(alert: Alert): string {
  const known = alert.code in names ? names[alert.code as keyof typeof names] : null;
  return known ? known(componentName(alert.subject ?? "")) : alert.code.replaceAll("_", " ");
}
