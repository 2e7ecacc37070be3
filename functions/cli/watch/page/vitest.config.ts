import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: { testTimeout: 240_000, hookTimeout: 240_000, disableConsoleIntercept: true },
});
