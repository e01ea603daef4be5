// Texts of the Access page; those of each tab are in texts/.

import { texts } from "../../i18n";

export const t = texts({
  en: {
    title: "Access",
    intro: "Users, torrents, clients and ports that the tracker admits. Changes take effect within a second and are recorded in the audit trail.",
    readOnly: "Your key is read-only. To make changes, sign in with a key that has the scope admin.",
    needAdmin: "Requires a key with the scope admin.",
    actions: "Actions",
    state: "State",
    enabled: "enabled",
    disabled: "disabled",
    enable: "Enable",
    disable: "Disable",
    remove: "Remove",
    cancel: "Cancel",
    add: "Add",
    optional: "optional",
    show: "Show",
    hide: "Hide",
    done: "Close",
    badNumber: "Enter a whole number above 0.",
  },
  zh: {
    title: "访问控制",
    intro: "tracker 接受哪些用户、种子、客户端和端口。修改一秒内生效，并写入审计日志。",
    readOnly: "你的密钥只能查看，不能修改。要修改，请用带 admin 权限的密钥登录。",
    needAdmin: "需要带 admin 权限的密钥。",
    actions: "操作",
    state: "状态",
    enabled: "启用",
    disabled: "停用",
    enable: "启用",
    disable: "停用",
    remove: "删除",
    cancel: "取消",
    add: "添加",
    optional: "可以不填",
    show: "显示",
    hide: "隐藏",
    done: "关闭",
    badNumber: "请填大于 0 的整数。",
  },
});

export const tabNames = texts({
  en: {
    users: "Users and passkeys",
    torrents: "Torrents",
    clients: "Clients",
    ports: "Banned ports",
    multipliers: "Multipliers",
    keys: "API keys",
  },
  zh: {
    users: "用户与 passkey",
    torrents: "种子",
    clients: "客户端",
    ports: "禁用端口",
    multipliers: "流量倍率",
    keys: "API 密钥",
  },
});
