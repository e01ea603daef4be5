// Navigation: pages, connection state, session, language and theme. On a phone it opens by a button.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { counted } from "./format";
import { language, setLanguage, texts, type Language } from "./i18n";
import { connection, overview } from "./live";
import { route } from "./router";
import { can, session, signOut } from "./session";
import { setTheme, theme, type Theme } from "./theme";
import { attempt, Button, Name, Select } from "./ui";
import { Icon, type IconName } from "./ui/icon";

const t = texts({
  en: {
    pages: "Pages",
    menu: "Menu",
    overview: "Overview",
    swarms: "Swarms",
    users: "Users",
    staff: "Staff",
    docs: "API documentation",
    presence: "Presence",
    pipeline: "Pipeline",
    access: "Access",
    audit: "Audit",
    live: "Live",
    unreachable: "No answer",
    liveHint: "Refreshed every second",
    unreachableHint: "The server does not answer",
    language: "Language",
    theme: "Theme",
    system: "System",
    light: "Light",
    dark: "Dark",
    signOut: "Sign out",
    signedInAs: "Signed in with the key",
    readOnly: "read only",
    alerts: (n: number) => counted(n, "alert"),
  },
  zh: {
    pages: "页面",
    menu: "菜单",
    overview: "总览",
    swarms: "种子群",
    users: "用户",
    staff: "管理",
    docs: "API 文档",
    presence: "在线状态",
    pipeline: "流水线",
    access: "访问控制",
    audit: "审计",
    live: "实时",
    unreachable: "无响应",
    liveHint: "数据每秒自动刷新",
    unreachableHint: "服务器没有响应",
    language: "语言",
    theme: "主题",
    system: "系统",
    light: "浅色",
    dark: "深色",
    signOut: "退出登录",
    signedInAs: "登录所用的密钥",
    readOnly: "只读",
    alerts: (n) => `${n} 条警报`,
  },
});

type PageName = "overview" | "swarms" | "users" | "staff" | "presence" | "pipeline" | "access" | "audit";

const PAGES: { name: PageName; href: string; icon: IconName; scope: "read" | "admin" }[] = [
  { name: "overview", href: "/", icon: "overview", scope: "read" },
  { name: "swarms", href: "/swarms", icon: "swarms", scope: "read" },
  { name: "users", href: "/users", icon: "users", scope: "read" },
  { name: "staff", href: "/staff", icon: "staff", scope: "read" },
  { name: "presence", href: "/presence", icon: "presence", scope: "read" },
  { name: "pipeline", href: "/pipeline", icon: "pipeline", scope: "read" },
  { name: "access", href: "/access/users", icon: "access", scope: "read" },
  { name: "audit", href: "/audit", icon: "audit", scope: "admin" },
];

export function Nav() {
  const isOpen = useSignal(false);
  const { path } = route.value;
  useEffect(() => {
    isOpen.value = false;
  }, [path]);
  return (
    <header class={isOpen.value ? "nav nav-open" : "nav"}>
      <div class="nav-top">
        <a class="brand" href="#/">
          <Icon name="brand" size={22} />
          <span>Rollcall</span>
        </a>
        <ConnectionState />
        <button
          type="button"
          class="nav-toggle"
          aria-expanded={isOpen.value}
          aria-controls="nav-body"
          onClick={() => {
            isOpen.value = !isOpen.value;
          }}
        >
          <Icon name="menu" size={20} />
          <span class="visually-hidden">{t.menu}</span>
        </button>
      </div>
      <div id="nav-body" class="nav-body">
        <nav aria-label={t.pages}>
          <ul>
            {PAGES.filter((page) => can(page.scope)).map((page) => (
              <li key={page.name}>
                <NavLink {...page} path={path} />
              </li>
            ))}
          </ul>
        </nav>
        <div class="nav-foot">
          <a class="nav-docs" href={`/docs?lang=${language.value}`} target="_blank" rel="noopener">
            {t.docs}
          </a>
          <Preferences />
          <SignedInKey />
        </div>
      </div>
    </header>
  );
}

function NavLink(props: { name: PageName; href: string; icon: IconName; path: string }) {
  const first = props.href.split("/")[1] ?? "";
  const isCurrent = props.path.split("/")[1] === first;
  return (
    <a class="nav-link" href={`#${props.href}`} aria-current={isCurrent ? "page" : undefined}>
      <Icon name={props.icon} />
      <span>{t[props.name]}</span>
      {props.name === "overview" && <AlertCount />}
    </a>
  );
}

function AlertCount() {
  const alerts = overview.value?.alerts ?? [];
  if (alerts.length === 0) return null;
  const isBad = alerts.some((alert) => alert.severity === "critical");
  return (
    <span class={`nav-count tone-${isBad ? "bad" : "warn"}`} title={t.alerts(alerts.length)}>
      {alerts.length}
      <span class="visually-hidden"> {t.alerts(alerts.length)}</span>
    </span>
  );
}

function ConnectionState() {
  const state = connection.value;
  return (
    <span class={`connection connection-${state}`} title={state === "live" ? t.liveHint : t.unreachableHint}>
      <span class="connection-dot" aria-hidden="true" />
      {t[state]}
    </span>
  );
}

export function Preferences() {
  return (
    <div class="preferences">
      <Select<Language>
        bare
        label={t.language}
        value={language.value}
        onChange={setLanguage}
        options={[
          { value: "en", label: "English" },
          { value: "zh", label: "中文" },
        ]}
      />
      <Select<Theme>
        bare
        label={t.theme}
        value={theme.value}
        onChange={setTheme}
        options={[
          { value: "system", label: t.system },
          { value: "light", label: t.light },
          { value: "dark", label: t.dark },
        ]}
      />
    </div>
  );
}

function SignedInKey() {
  const key = session.value;
  if (!key) return null;
  return (
    <div class="signed-in-key">
      <span class="signed-in-name" title={t.signedInAs}>
        <Name text={key.name} most={40} />
        {!can("admin") && <span class="dim">{t.readOnly}</span>}
      </span>
      <Button tone="quiet" small onClick={() => attempt(signOut)}>
        {t.signOut}
      </Button>
    </div>
  );
}
