// Texts of the tab "Multipliers".

import { texts } from "../../../i18n";

export const t = texts({
  en: {
    add: "Add a multiplier",
    rule: "During its period, a multiplier changes how many bytes are credited. Raw figures never change.",
    scope: "For",
    kind: "Kind",
    upload: "Upload credited, in percent",
    download: "Download credited, in percent",
    percentBad: "Enter a whole number from 0 to 10,000.",
    starts: "From",
    startsHint: "empty: now",
    ends: "Until",
    endsHint: "empty: until you end it",
    endsBad: "The end must be after the start.",
    endsPast: "The end is in the past.",
    note: "Note",
    noteHint: "reason, for staff",
    siteTitle: "Change credited bytes for the whole site?",
    siteBody: (what: string) => `${what}, for all users and torrents. Bytes credited during the period stay credited.`,
    added: "Multiplier added",
    list: "Multipliers",
    none: "No multipliers",
    noneHint: "Raw bytes are credited unchanged.",
    up: "Upload",
    down: "Download",
    active: "active",
    scheduled: "scheduled",
    endedState: "ended",
    endless: "no end",
    end: "End",
    endTitle: "End this multiplier?",
    endBody: "Bytes are then credited unchanged, or by another multiplier. Bytes credited so far stay credited.",
    removeTitle: "Remove this multiplier?",
    removeBody: "It has not started and will have no effect.",
    ended: "Multiplier ended",
    what: (up: string, down: string) => `Uploads are credited ${up} %, downloads ${down} %`,
  },
  zh: {
    add: "添加流量倍率",
    rule: "在一段时间内，流量按倍率计入。原始数字不变，只影响计入的数字。",
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
    noteHint: "原因，供管理人员查看",
    siteTitle: "修改全站的流量计算？",
    siteBody: (what: string) => `此后对所有用户、所有种子：${what}。期间已计入的数字不会再变。`,
    added: "已添加流量倍率",
    list: "流量倍率",
    none: "没有流量倍率",
    noneHint: "原始字节按原值计入。",
    up: "上传",
    down: "下载",
    active: "生效中",
    scheduled: "未开始",
    endedState: "已结束",
    endless: "直到手动结束",
    end: "结束",
    endTitle: "结束这个倍率？",
    endBody: "此后流量按原值计入，或按其他倍率计入。已计入的保持不变。",
    removeTitle: "删除这个倍率？",
    removeBody: "它尚未开始，也不会再开始。",
    ended: "倍率已结束",
    what: (up: string, down: string) => `上传计 ${up}%，下载计 ${down}%`,
  },
});

export const scopeNames = texts({
  en: { site: "the whole site", torrent: "one torrent", user: "one user" },
  zh: { site: "全站", torrent: "单个种子", user: "单个用户" },
});

/** Labels of the number field. */
export const subjectNames = texts({
  en: { torrent: "Torrent number", user: "User number" },
  zh: { torrent: "种子编号", user: "用户编号" },
});

export const subjectOf = texts({
  en: { torrent: (id: string) => `torrent ${id}`, user: (id: string) => `user ${id}` },
  zh: { torrent: (id: string) => `种子 ${id}`, user: (id: string) => `用户 ${id}` },
});

/** Presets. */
export const kindNames = texts({
  en: {
    freeleech: "Freeleech: downloads are not credited",
    half: "Half: downloads are credited by half",
    double: "Double upload",
    both: "Freeleech and double upload",
    own: "Custom percentages",
  },
  zh: {
    freeleech: "免费：下载不计",
    half: "半价：下载计一半",
    double: "双倍上传",
    both: "免费且双倍上传",
    own: "自定百分比",
  },
});
