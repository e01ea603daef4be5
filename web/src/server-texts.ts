// Display texts for names and reasons that the server sends in English. Unknown ones are shown unchanged.
import { language, translate, texts } from "./i18n";

const components = texts({
  en: {
    database: "database",
    redis: "Redis",
    journal: "journal",
    journal_queue: "journal queue",
    audit: "audit trail",
    whitelist: "whitelist",
    presence_cluster: "presence cluster",
    ledger: "ledger",
    activity: "activity",
    mirror: "mirror",
  },
  zh: {
    database: "数据库",
    redis: "Redis",
    journal: "流量日志",
    journal_queue: "流量日志队列",
    audit: "审计日志",
    whitelist: "白名单",
    presence_cluster: "网关集群",
    ledger: "账本",
    activity: "做种／下载列表",
    mirror: "镜像",
  },
});

/** Name of a dependency or a view. */
export function componentName(name: string): string {
  return translate(components, name);
}

const EXPECTED_ZH: Record<string, string> = {
  "8 to 64 hexadecimal digits": "8 到 64 位十六进制数字",
  "40 hexadecimal digits": "40 位十六进制数字",
  "16 hexadecimal digits": "16 位十六进制数字",
  "8 hexadecimal digits": "8 位十六进制数字",
  "a port from 0 to 65535": "0 到 65535 的端口",
  "none, started, completed or stopped": "none、started、completed 或 stopped",
  "announce, timeout or removal": "announce、timeout 或 removal",
  "seconds since 1970": "自 1970 年起的秒数",
  "a number of seconds": "秒数",
  "a number of seconds, at most a year": "秒数，最多一年",
  "a whole number from 0 to 18446744073709551615": "0 到 18446744073709551615 的整数",
  "IPv4 or IPv6": "IPv4 或 IPv6",
  "a session such as 150b89c31afd823e-0000002a": "形如 150b89c31afd823e-0000002a 的会话",
};

const REASONS_ZH: [pattern: RegExp, text: (...parts: string[]) => string][] = [
  [/^(\w+): the field is missing$/, (field) => `${field}：缺少该字段`],
  [/^(\w+): expected (.+?), found "(.*)"$/s, (field, expected = "", found) => `${field}：应为 ${EXPECTED_ZH[expected] ?? expected}，实为“${found}”`],
  [/^af: does not match the address in ip$/, () => "af：与 ip 中的地址不符"],
  [/^passkey: empty, and there is no user$/, () => "passkey：为空，且没有 user 字段"],
  [/^no user has this passkey$/, () => "没有用户使用此 passkey"],
  [/^no torrent has the infohash (\w+)$/, (infohash) => `没有 infohash 为 ${infohash} 的种子`],
  [/^ts: (.+) is more than (.+) ahead of this machine's clock \((.+)\); check the producer's clock$/, (at, max, now) => `ts：${at} 比本机时钟（${now}）超前 ${max} 以上；请检查生产者的时钟`],
  [/^ts: (.+) is older than the session retention \((.+)\)$/, (at, kept) => `ts：${at} 早于会话的保留期限（${kept}）`],
];

/** Why a view rejected an entry. */
export function deadLetterReason(reason: string): string {
  if (language.value !== "zh") return reason;
  for (const [pattern, text] of REASONS_ZH) {
    const match = pattern.exec(reason);
    if (match) return text(...match.slice(1));
  }
  return reason;
}
