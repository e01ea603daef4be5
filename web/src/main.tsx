// Where the dashboard begins.
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

// Live data is for whoever is signed in: another session, another feed.
effect(() => {
  const isSignedIn = Boolean(session.value);
  untracked(isSignedIn ? startLive : stopLive);
});

const root = document.getElementById("app");
if (root) render(<App />, root);
