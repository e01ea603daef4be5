// Words that the shared pieces use, and that more than one page may want.
import { count } from "../format";
import { texts } from "../i18n";

/** Words for everywhere. */
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
    nothing: "Nothing here",
    typeToConfirm: (word: string) => `Type “${word}” to go on`,
    away: "The server does not answer.",
    awayHint: "This tries again by itself. If it stays like this, see whether the server runs.",
    refused: "Your key does not allow this.",
    refusedHint: "Sign in with a key that has the scope it needs: rollcall key create --name me --scope admin",
    missing: "There is no such thing here (any more).",
    failed: "That did not work.",
    tooMany: "Too many requests.",
    latest: "latest",
    sortedUp: "sorted, smallest first",
    sortedDown: "sorted, biggest first",
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
    away: "服务器没有响应。",
    awayHint: "页面会自动重试。如果一直如此，请检查服务器是否在运行。",
    refused: "你的密钥没有这个权限。",
    refusedHint: "请用具有所需权限的密钥登录：rollcall key create --name me --scope admin",
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

/** A status of a person, as it is called. */
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
