// Chromium by its DevTools protocol, over a pipe: it ends with the program that started it, however that ends. Nothing else
// is in between, since frameworks for browser tests make every page believe that it is visible and in front.
import { spawn } from "node:child_process";

const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-default-apps",
  "--no-proxy-server",
  "--remote-debugging-pipe",
];

/** A running browser. */
export class Chromium {
  #toBrowser;
  #waiting = new Map();
  #listeners = new Map();
  #lastId = 0;

  /** Starts it with a profile of its own. */
  static start(profile) {
    const flags = [...FLAGS, `--user-data-dir=${profile}`, "about:blank"];
    const child = spawn("/usr/bin/chromium", flags, { stdio: ["ignore", "ignore", "inherit", "pipe", "pipe"] });
    const browser = new Chromium();
    child.on("error", (error) => browser.#end(`Chromium does not start: ${error.message}; run make test, which installs it`));
    child.on("exit", () => browser.#end("Chromium has ended"));
    browser.child = child;
    browser.#toBrowser = child.stdio[3];
    browser.#toBrowser.on("error", () => {});
    let rest = "";
    child.stdio[4].setEncoding("utf8");
    child.stdio[4].on("data", (text) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop();
      messages.forEach((message) => browser.#hear(JSON.parse(message)));
    });
    return browser;
  }

  /** Calls a method, of the browser or of one page's session. */
  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#lastId;
    this.#toBrowser.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, method }));
  }

  /** A person's browser: cookies, storage and tabs of its own. */
  async newPerson() {
    const { browserContextId } = await this.send("Target.createBrowserContext");
    return browserContextId;
  }

  /** Opens a tab in front of the person's others, and passes on what its page says. */
  async open(browserContextId, url, onSaid) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const tab = new Tab(this, targetId, sessionId);
    this.#listeners.set(sessionId, onSaid);
    await tab.send("Runtime.enable");
    await tab.send("Runtime.addBinding", { name: "say" });
    await tab.send("Page.enable");
    await tab.send("Network.enable");
    await tab.send("Page.navigate", { url });
    return tab;
  }

  #hear({ id, result, error, method, params, sessionId }) {
    if (id !== undefined) {
      const { resolve, reject, method: called } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(`${called}: ${error.message}`));
    } else if (method === "Runtime.bindingCalled") {
      this.#listeners.get(sessionId)?.(JSON.parse(params.payload));
    } else if (method === "Runtime.exceptionThrown") {
      console.error(`in the page: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
    }
  }

  #end(why) {
    for (const { reject } of this.#waiting.values()) reject(new Error(why));
    this.#waiting.clear();
  }
}

class Tab {
  #browser;
  #sessionId;

  constructor(browser, targetId, sessionId) {
    this.#browser = browser;
    this.targetId = targetId;
    this.#sessionId = sessionId;
  }

  send(method, params = {}) {
    return this.#browser.send(method, params, this.#sessionId);
  }

  /** Shows it in front of the other tabs of its window. */
  show() {
    return this.#browser.send("Target.activateTarget", { targetId: this.targetId });
  }

  /** Closes it, as its cross does. */
  close() {
    return this.#browser.send("Target.closeTarget", { targetId: this.targetId });
  }

  /** Evaluates in the page. */
  async evaluate(expression) {
    const call = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", call);
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}
