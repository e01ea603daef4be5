// Words of the server that the user pages translate. With `say` a word that is new to us is shown as it is.
import { texts } from "../../i18n";

/** Kinds of devices. */
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

/** Whether somebody looks at an app. */
export const appStates = texts({
  en: {
    foreground: "in front",
    background: "in the background",
    inactive: "nobody looks",
  },
  zh: {
    foreground: "前台",
    background: "后台",
    inactive: "无人操作",
  },
});

/** Why somebody came, went or changed. */
export const causes = texts({
  en: {
    connect: "connected",
    close: "closed",
    goodbye: "said goodbye",
    drop: "connection broke",
    silence: "silent",
    signed_out: "signed out",
    declared: "said so",
    app_state: "app in front or not",
    until: "what was declared ended",
    restart: "server restarted",
    pending_over: "did not come back",
    heartbeat: "heartbeat",
  },
  zh: {
    connect: "已连接",
    close: "正常关闭",
    goodbye: "告别",
    drop: "连接中断",
    silence: "没有响应",
    signed_out: "被登出",
    declared: "自己设置",
    app_state: "应用切换前后台",
    until: "设置到期",
    restart: "服务器重启",
    pending_over: "没有回来",
    heartbeat: "心跳",
  },
});

/** What happens to people. */
export const happenings = texts({
  en: {
    arrived: "came",
    left: "went",
    transition: "changed",
  },
  zh: {
    arrived: "来了",
    left: "走了",
    transition: "变化",
  },
});

/** What an announce tells. */
export const announces = texts({
  en: {
    none: "regular",
    started: "started",
    completed: "completed",
    stopped: "stopped",
    timeout: "fell silent",
    removal: "removed",
  },
  zh: {
    none: "常规",
    started: "开始",
    completed: "完成",
    stopped: "停止",
    timeout: "失联",
    removal: "被移除",
  },
});
