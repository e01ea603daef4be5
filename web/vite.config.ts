// Build and development server. `npm run dev` serves the sources and proxies everything else to a running server:
// ROLLCALL_URL, default http://127.0.0.1:8080.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const server = process.env.ROLLCALL_URL ?? "http://127.0.0.1:8080";
// The server accepts sessions from its own origin only.
const toServer = {
  target: server,
  changeOrigin: true,
  headers: { origin: new URL(server).origin },
};

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  resolve: {
    // The member's page uses the client library from its sources.
    alias: { "rollcall-presence": fileURLToPath(new URL("../clients/js/src/index.ts", import.meta.url)) },
    // Those sources have no node_modules.
    dedupe: ["centrifuge"],
  },
  build: {
    target: "es2022",
    // The Content-Security-Policy forbids data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: ["index.html", "me.html"] },
  },
  server: {
    // Unit tests compare texts with the sources of the server.
    fs: { allow: process.env.VITEST ? [".."] : [".", "../clients/js/src"] },
    proxy: {
      "/api": toServer,
      "/session": toServer,
      "/readyz": toServer,
      "/healthz": toServer,
      "/metrics": toServer,
      "/connection": { ...toServer, ws: true },
    },
  },
  // One thread: the tests are faster than starting workers.
  test: { include: ["tests/**/*.test.{ts,tsx}"], pool: "threads", isolate: false, poolOptions: { threads: { singleThread: true } } },
});
