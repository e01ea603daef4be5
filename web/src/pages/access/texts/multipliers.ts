// What the tab "Multipliers" says.

import { texts } from "../../../i18n";

export const t = texts({
  en: {
    add: "Add a multiplier",
    rule: "For a while, bytes count more or less than they are. Raw figures never change; only credited ones do.",
    scope: "For",
    kind: "Kind",
    upload: "Upload counts, in percent",
    download: "Download counts, in percent",
    percentBad: "A whole number from 0 to 10,000.",
    starts: "From",
    startsHint: "now if left out",
    ends: "Until",
    endsHint: "until you end it if left out",
    endsBad: "It must end after it starts.",
    endsPast: "That is over already.",
    note: "Note",
    noteHint: "why, for people",
    siteTitle: "Change what bytes count for the whole site?",
    siteBody: (what: string) => `${what}, for everybody and every torrent, from then on. What is credited meanwhile stays credited.`,
    added: "The multiplier was added",
    list: "Multipliers",
    none: "No multipliers",
    noneHint: "Every byte counts as it is.",
    up: "Upload",
    down: "Download",
    now: "in force",
    later: "to come",
    over: "over",
    endless: "until it is ended",
    end: "End",
    forget: "Remove",
    endTitle: "End this multiplier?",
    endBody: "From now on bytes count as they are, or as another multiplier says. What it has added stays.",
    laterTitle: "Remove this multiplier?",
    laterBody: "It has not begun, and never will.",
    ended: "The multiplier has ended",
    what: (up: string, down: string) => `Uploads count ${up} %, downloads ${down} %`,
  },
  zh: {
    add: "添加流量倍率",
    rule: "在一段时间内，流量按倍率计。原始数字不变，只影响计入的数字。",
    scope: "适用于",
    kind: "类型",
    upload: "上传计入百分比",
    download: "下载计入百分比",
    percentBad: "请填 0 到 10,000 的整数。",
    starts: "开始",
    startsHint: "不填则从现在起",
    ends: "结束",
    endsHint: "不填则直到手动结束",
    endsBad: "结束必须晚于开始。",
    endsPast: "这个时间已经过去。",
    note: "备注",
    noteHint: "原因，给人看",
    siteTitle: "修改全站的流量计算？",
    siteBody: (what: string) => `此后对所有人、所有种子：${what}。期间已计入的数字不会再变。`,
    added: "已添加流量倍率",
    list: "流量倍率",
    none: "没有流量倍率",
    noneHint: "每个字节按实际计。",
    up: "上传",
    down: "下载",
    now: "生效中",
    later: "未开始",
    over: "已结束",
    endless: "直到手动结束",
    end: "结束",
    forget: "删除",
    endTitle: "结束这个倍率？",
    endBody: "此后流量按实际计，或按其他倍率计。它已增加的保持不变。",
    laterTitle: "删除这个倍率？",
    laterBody: "它尚未开始，也不会再开始。",
    ended: "倍率已结束",
    what: (up: string, down: string) => `上传计 ${up}%，下载计 ${down}%`,
  },
});

/** What a multiplier is for. */
export const scopeNames = texts({
  en: { site: "the whole site", torrent: "one torrent", user: "one user" },
  zh: { site: "全站", torrent: "单个种子", user: "单个用户" },
});

/** Whose number is asked for. */
export const subjectNames = texts({
  en: { torrent: "Torrent's number", user: "User's number" },
  zh: { torrent: "种子编号", user: "用户编号" },
});

/** Which one it is for. */
export const subjectOf = texts({
  en: { torrent: (id: string) => `torrent ${id}`, user: (id: string) => `user ${id}` },
  zh: { torrent: (id: string) => `种子 ${id}`, user: (id: string) => `用户 ${id}` },
});

/** Multipliers that are often wanted. */
export const kindNames = texts({
  en: {
    freeleech: "Freeleech: downloads do not count",
    half: "Half: downloads count half",
    double: "Double upload",
    both: "Freeleech and double upload",
    own: "Own percentages",
  },
  zh: {
    freeleech: "免费：下载不计",
    half: "半价：下载计一半",
    double: "双倍上传",
    both: "免费且双倍上传",
    own: "自定百分比",
  },
});
