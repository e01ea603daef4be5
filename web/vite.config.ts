// How the pages are built, and how they are served while somebody works on them.
//
// `npm run dev` serves the sources and passes everything else on to a running server: ROLLCALL_URL, by default
// http://127.0.0.1:8080.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const server = process.env.ROLLCALL_URL ?? "http://127.0.0.1:8080";
// The server takes a session only from its own origin: to it, the page must look as if it came from there.
const toServer = {
  target: server,
  changeOrigin: true,
  headers: { origin: new URL(server).origin },
};

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  resolve: {
    // The member's page is built on our own client library, from its sources: there is nothing to install or to publish.
    alias: { "rollcall-presence": fileURLToPath(new URL("../clients/js/src/index.ts", import.meta.url)) },
    // Its sources have no packages of their own beside them.
    dedupe: ["centrifuge"],
  },
  build: {
    target: "es2022",
    // A picture inlined as data: would need a hole in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: ["index.html", "me.html"] },
  },
  server: {
    fs: { allow: [".", "../clients/js/src"] },
    proxy: {
      "/api": toServer,
      "/session": toServer,
      "/readyz": toServer,
      "/healthz": toServer,
      "/metrics": toServer,
      "/connection": { ...toServer, ws: true },
    },
  },
  // They are quick and share nothing: a process for each would take longer than all of them.
  test: { include: ["tests/**/*.test.{ts,tsx}"], pool: "threads", isolate: false, poolOptions: { threads: { singleThread: true } } },
});
