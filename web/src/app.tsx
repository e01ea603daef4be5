// The shell around every page, and the routes.
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useErrorBoundary, useRef } from "preact/hooks";
import { backoffMs } from "./backoff";
import { asProblem } from "./api/client";
import { Banner } from "./banner";
import { texts } from "./i18n";
import { Nav } from "./nav";
import AccessPage from "./pages/access";
import AuditPage from "./pages/audit";
import OverviewPage from "./pages/overview";
import PipelinePage from "./pages/pipeline";
import PresencePage from "./pages/presence";
import SignInPage from "./pages/sign-in";
import StaffPage from "./pages/staff";
import SwarmsPage from "./pages/swarms";
import TorrentPage from "./pages/swarms/torrent";
import UsersPage from "./pages/users";
import UserPage from "./pages/users/user";
import { match, route, type PageProps } from "./router";
import { findSession, session, sessionProblem, toSignIn } from "./session";
import { Confirm, Empty, Failure, Page, Toasts } from "./ui";

const t = texts({
  en: {
    skip: "Skip to content",
    noPage: "Page not found",
    noPageHint: "The address may be wrong, or from another version.",
    toOverview: "Go to the overview",
    broken: "This page failed",
  },
  zh: {
    skip: "跳到正文",
    noPage: "没有这个页面",
    noPageHint: "地址可能有误，或来自其他版本。",
    toOverview: "回到总览",
    broken: "这个页面出错了",
  },
});

const PAGES: [pattern: string, page: ComponentType<PageProps>][] = [
  ["/", OverviewPage],
  ["/swarms", SwarmsPage],
  ["/swarms/:id", TorrentPage],
  ["/users", UsersPage],
  ["/users/:id", UserPage],
  ["/staff", StaffPage],
  ["/presence", PresencePage],
  ["/pipeline", PipelinePage],
  ["/access", AccessPage],
  ["/access/:tab", AccessPage],
  ["/audit", AuditPage],
];

export function App() {
  const { path, query } = route.value;
  useEffect(() => {
    if (session.value === null && path !== "/sign-in") toSignIn();
  }, [session.value, path]);

  return (
    <>
      {path === "/sign-in" ? <SignInPage params={{}} query={query} /> : <SignedIn />}
      <Toasts />
      <Confirm />
    </>
  );
}

function SignedIn() {
  if (session.value === undefined) return <Finding />;
  if (session.value === null) return null;
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skip}>
        {t.skip}
      </a>
      <Nav />
      <div class="shell-main">
        <Banner />
        <main id="main" tabIndex={-1}>
          <CurrentPage />
        </main>
      </div>
    </div>
  );
}

// The hash is the route, so the link must not change it.
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

// Shown until the session is known; retries while the server is unreachable.
function Finding() {
  const failures = useRef(0);
  const problem = sessionProblem.value;
  useEffect(() => {
    if (!problem) return;
    failures.current += 1;
    const timer = setTimeout(() => void findSession(), backoffMs(failures.current, Math.random(), { firstMs: 1000, lastMs: 5000 }));
    return () => clearTimeout(timer);
  }, [problem]);
  if (!problem) return null;
  return (
    <main class="alone">
      <Failure problem={problem} retry={() => void findSession()} />
    </main>
  );
}

function CurrentPage() {
  const { path, query } = route.value;
  const lastPath = useRef(path);
  useEffect(() => {
    if (lastPath.current === path) return;
    lastPath.current = path;
    // Like a page load: scroll to the top, and screen readers announce the heading.
    window.scrollTo(0, 0);
    document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
  }, [path]);

  for (const [pattern, PageThere] of PAGES) {
    const params = match(pattern, path);
    if (params) {
      return (
        <Guarded key={pattern}>
          <PageThere params={params} query={query} />
        </Guarded>
      );
    }
  }
  return (
    <Page title={t.noPage}>
      <Empty title={t.noPageHint}>
        <a href="#/">{t.toOverview}</a>
      </Empty>
    </Page>
  );
}

// An error in one page leaves the rest usable.
function Guarded(props: { children: preact.ComponentChildren }) {
  const seen = useSignal(0);
  const [fault, reset] = useErrorBoundary((thrown) => console.error(thrown));
  if (!fault) return <div key={seen.value}>{props.children}</div>;
  return (
    <Page title={t.broken}>
      <Failure
        problem={asProblem(fault)}
        retry={() => {
          seen.value += 1;
          reset();
        }}
      />
    </Page>
  );
}
