// Texts of the shared components.
import { count } from "../format";
import { texts } from "../i18n";

export const words = texts({
  en: {
    loading: "Loading…",
    retry: "Try again",
    cancel: "Cancel",
    close: "Close",
    copy: "Copy",
    copied: "Copied",
    more: "Load more",
    showMore: (n: number) => `Show ${count(n)} more`,
    search: "Search",
    clear: "Clear",
    nothing: "Nothing to show",
    typeToConfirm: (word: string) => `Type “${word}” to continue`,
    unreachable: "The server does not answer.",
    unreachableHint: "The page retries automatically. If this persists, check whether the server is running.",
    forbidden: "Your key does not allow this.",
    forbiddenHint: "Sign in with a key that has the required scope: rollcall key create --name me --scope admin",
    missing: "Not found. It may have been removed.",
    failed: "The request failed.",
    tooMany: "Too many requests.",
    latest: "latest",
    sortedUp: "sorted ascending",
    sortedDown: "sorted descending",
    online: "online",
    busy: "busy",
    offline: "offline",
    invisible: "invisible",
    pending: "pending",
    dismiss: "Dismiss",
    yes: "yes",
    no: "no",
    statusAway: "away",
  },
  zh: {
    loading: "正在加载…",
    retry: "重试",
    cancel: "取消",
    close: "关闭",
    copy: "复制",
    copied: "已复制",
    more: "加载更多",
    showMore: (n) => `再显示 ${count(n)} 个`,
    search: "搜索",
    clear: "清除",
    nothing: "这里什么也没有",
    typeToConfirm: (word) => `输入“${word}”以继续`,
    unreachable: "服务器没有响应。",
    unreachableHint: "页面会自动重试。如果一直如此，请检查服务器是否在运行。",
    forbidden: "你的密钥没有这个权限。",
    forbiddenHint: "请用具有所需权限的密钥登录：rollcall key create --name me --scope admin",
    missing: "这里没有（或不再有）这个内容。",
    failed: "操作没有成功。",
    tooMany: "请求过多。",
    latest: "最新",
    sortedUp: "已排序，从小到大",
    sortedDown: "已排序，从大到小",
    online: "在线",
    busy: "忙碌",
    offline: "离线",
    invisible: "隐身",
    pending: "待恢复",
    dismiss: "关闭提示",
    yes: "是",
    no: "否",
    statusAway: "离开",
  },
});

export function statusName(status: string): string {
  switch (status) {
    case "online":
      return words.online;
    case "away":
      return words.statusAway;
    case "busy":
      return words.busy;
    case "offline":
      return words.offline;
    case "invisible":
      return words.invisible;
    case "pending":
      return words.pending;
    default:
      return status;
  }
}
