// Entry point of the dashboard.
import { effect, untracked } from "@preact/signals";
import { render } from "preact";
import { App } from "./app";
import { startClock } from "./clock";
import { startLive, stopLive } from "./live";
import { findSession, session, startSession } from "./session";
import "./styles/index.css";
import "./theme";

startSession();
startClock();
void findSession();

// Another session may have other rights: start again.
effect(() => {
  const isSignedIn = Boolean(session.value);
  untracked(isSignedIn ? startLive : stopLive);
});

const root = document.getElementById("app");
if (root) render(<App />, root);
