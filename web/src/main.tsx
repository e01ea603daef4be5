// Where the dashboard begins.
import { effect } from "@preact/signals";
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
  if (session.value) startLive();
  else stopLive();
});

const root = document.getElementById("app");
if (root) render(<App />, root);
