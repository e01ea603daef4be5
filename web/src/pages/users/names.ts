// Display names of values that the API returns. `translate` shows unknown values unchanged.
import { texts } from "../../i18n";

export const platforms = texts({
  en: {
    web: "web",
    phone: "phone",
    computer: "computer",
  },
  zh: {
    web: "网页",
    phone: "手机",
    computer: "电脑",
  },
});

export const appStates = texts({
  en: {
    foreground: "foreground",
    background: "background",
    inactive: "inactive",
  },
  zh: {
    foreground: "前台",
    background: "后台",
    inactive: "不活跃",
  },
});

export const causes = texts({
  en: {
    connect: "connected",
    close: "closed",
    goodbye: "closed by the client",
    drop: "connection lost",
    silence: "no heartbeat",
    signed_out: "signed out",
    declared: "set by user",
    app_state: "app state",
    until: "declared status expired",
    restart: "server restarted",
    pending_over: "did not reconnect",
    heartbeat: "heartbeat",
  },
  zh: {
    connect: "已连接",
    close: "正常关闭",
    goodbye: "客户端关闭",
    drop: "连接中断",
    silence: "没有心跳",
    signed_out: "被登出",
    declared: "用户设置",
    app_state: "应用状态",
    until: "设置到期",
    restart: "服务器重启",
    pending_over: "没有重连",
    heartbeat: "心跳",
  },
});

export const presenceEvents = texts({
  en: {
    arrived: "joined",
    left: "left",
    transition: "changed",
  },
  zh: {
    arrived: "上线",
    left: "下线",
    transition: "变化",
  },
});

/** Events of announces, and causes of entries without one. */
export const announces = texts({
  en: {
    none: "regular",
    started: "started",
    completed: "completed",
    stopped: "stopped",
    timeout: "timed out",
    removal: "removed",
  },
  zh: {
    none: "常规",
    started: "开始",
    completed: "完成",
    stopped: "停止",
    timeout: "超时",
    removal: "被移除",
  },
});
