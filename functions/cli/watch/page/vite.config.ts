import { defineConfig } from "vite";

// Addresses are relative: the page is served under a token that is made anew each time.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../built",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the page allows no data in place of a script or style.
    assetsInlineLimit: 0,
    modulePreload: false,
  },
});
