// The dashboard in Chromium, against real servers: `ROLLCALL_BIN=…/rollcall npx playwright test`.
//
// Uses the installed browser (CHROMIUM names another one).
import { defineConfig } from "@playwright/test";

// No background traffic of the browser.
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export default defineConfig({
  testDir: "e2e",
  outputDir: process.env["E2E_OUTPUT"] ?? "node_modules/.e2e",
  fullyParallel: true,
  forbidOnly: true,
  workers: 2,
  // Generous: the machine may be busy with other tests.
  timeout: 150_000,
  expect: { timeout: 40_000 },
  reporter: [["list"]],
  use: {
    actionTimeout: 40_000,
    navigationTimeout: 60_000,
    locale: "en-GB",
    viewport: { width: 1280, height: 800 },
    colorScheme: "light",
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS },
  },
});
