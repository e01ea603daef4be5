// Signing in with an API key. A link with a key (`#/sign-in?key=…`) signs in at once; the key is removed from address and
// history first. With an existing session the link asks for confirmation: a foreign link must not switch the session.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, type Problem } from "../../api/client";
import { counted } from "../../format";
import { texts } from "../../i18n";
import { Preferences } from "../../nav";
import { link, navigate, type PageProps } from "../../router";
import { session, sessionProblem, signIn } from "../../session";
import { Button, Name, TextField } from "../../ui";
import { Icon } from "../../ui/icon";
import { isOfKey, targetRoute } from "./target";

const t = texts({
  en: {
    title: "Sign in",
    lead: "Tracker, accounting and presence",
    key: "API key",
    keyHint: "Begins with rck_. It is exchanged for a session and not stored in this browser.",
    action: "Sign in",
    wrong: "Unknown key. It may be mistyped or revoked.",
    tooMany: (s: number) => `Too many wrong keys from your address. Try again in ${counted(s, "second")}.`,
    unreachable: "The server does not answer. Check whether it is running, then try again.",
    noScope: "This key cannot read: create one with the scope read or admin.",
    noKey: "No key yet? On the server's machine:",
    already: "You are signed in with the key",
    another: "The link contains another key. Sign in with it only if you trust its source.",
    stay: "Keep the current session",
  },
  zh: {
    title: "登录",
    lead: "tracker、流量统计与在线状态",
    key: "API 密钥",
    keyHint: "以 rck_ 开头。它会被换成会话，不会保存在此浏览器中。",
    action: "登录",
    wrong: "服务器不认识这个密钥。可能输错了，或已被删除。",
    tooMany: (s) => `来自你的地址的错误密钥过多。请在 ${s} 秒后重试。`,
    unreachable: "服务器没有响应。请检查它是否在运行，然后重试。",
    noScope: "这个密钥没有读取权限：请创建带 read 或 admin 权限的密钥。",
    noKey: "还没有密钥？在服务器上运行：",
    already: "你已登录，使用的密钥是",
    another: "你打开的链接带有另一个密钥。只有在知道链接由谁给出时，才用它登录。",
    stay: "保持原来的登录",
  },
});

export default function SignInPage(props: PageProps) {
  const key = useSignal("");
  const problem = useSignal<Problem | null>(null);
  const isBusy = useSignal(false);
  // State of the key in a link: none, undecided, or waiting for confirmation.
  const offer = useSignal<"none" | "undecided" | "waiting">("none");
  const to = targetRoute(props.query.get("to"));

  const enter = async (secret: string) => {
    isBusy.value = true;
    problem.value = null;
    try {
      await signIn(secret.trim());
      navigate(to, { replace: true });
    } catch (thrown) {
      problem.value = asProblem(thrown);
    } finally {
      isBusy.value = false;
    }
  };

  useEffect(() => {
    document.title = `${t.title} · Rollcall`;
    const given = props.query.get("key");
    if (given === null) return;
    navigate(link("/sign-in", to === "/" ? {} : { to }), { replace: true });
    key.value = given;
    offer.value = "undecided";
  }, [props.query.get("key")]);

  // A key in a link is used at once only without a session.
  useEffect(() => {
    if (offer.value !== "undecided" || (session.value === undefined && !sessionProblem.value)) return;
    if (session.value === null) {
      offer.value = "none";
      void enter(key.value);
    } else {
      offer.value = session.value && isOfKey(key.value, session.value.key_id) ? "none" : "waiting";
    }
  }, [offer.value, session.value, sessionProblem.value]);

  // Already signed in.
  useEffect(() => {
    if (session.value && !isBusy.value && offer.value === "none" && !props.query.has("key")) navigate(to, { replace: true });
  }, [session.value, offer.value]);

  return (
    <main class="sign-in">
      <div class="sign-in-box">
        <div class="brand brand-big">
          <Icon name="brand" size={28} />
          <span>Rollcall</span>
        </div>
        <p class="dim">{t.lead}</p>
        <h1>{t.title}</h1>
        {offer.value === "waiting" && session.value && (
          <p class="sign-in-note" role="status">
            {t.already} <Name text={session.value.name} most={60} />. {t.another} <a href={`#${to}`}>{t.stay}</a>
          </p>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (key.value.trim()) void enter(key.value);
          }}
        >
          <TextField
            label={t.key}
            hint={t.keyHint}
            error={problem.value && explain(problem.value)}
            value={key.value}
            onInput={(value) => {
              key.value = value;
            }}
            type="password"
            name="key"
            placeholder="rck_…"
            autoComplete="current-password"
            autoFocus
            mono
          />
          <Button type="submit" tone="primary" busy={isBusy.value} disabled={!key.value.trim()}>
            {t.action}
          </Button>
        </form>
        <p class="sign-in-hint dim">
          {t.noKey} <code>rollcall key create --name me --scope admin</code>
        </p>
      </div>
      <Preferences />
    </main>
  );
}

function explain(problem: Problem): string {
  if (problem.isUnreachable) return t.unreachable;
  if (problem.status === 401) return t.wrong;
  if (problem.status === 403) return t.noScope;
  if (problem.status === 429) return t.tooMany(problem.retryAfterS ?? 60);
  return problem.detail;
}
