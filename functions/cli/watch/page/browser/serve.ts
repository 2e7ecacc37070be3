import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { chromium, type Browser } from "playwright-core";

export const ROOT = resolve(import.meta.dirname, "../../../../..");
const OWN = join(ROOT, ".venv/bin/python");
export const PYTHON = process.env["PYTHON"] ?? (existsSync(OWN) ? OWN : "python3");
const START_MS = 120_000;

const BROWSERS = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser of this machine; nothing is downloaded. */
export async function browse(): Promise<Browser> {
  const found = BROWSERS.find((path) => path && existsSync(path));
  if (!found) throw new Error("no Chromium is installed: apt-get install chromium, or name one in CHROMIUM");
  return chromium.launch({ executablePath: found, args: ["--no-sandbox"] });
}

export interface Served {
  address: string;
  stop: () => void;
}

/** Plays a recording with `dovetail watch`, as users start it. */
export async function play(recording: string, speed: number): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), "dovetail-page-"));
  const file = join(folder, "address");
  const words = ["-m", "functions.cli", "watch", "--recording", recording];
  const child = spawn(PYTHON, [...words, "--speed", String(speed), "--address-file", file], {
    cwd: ROOT,
    env: { ...process.env, PYTHONPATH: ROOT },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = heard(child);
  const ends = Date.now() + START_MS;
  while (!existsSync(file)) {
    if (child.exitCode !== null || Date.now() > ends) throw new Error(`dovetail watch did not start: ${said()}`);
    await pause(100);
  }
  return {
    address: readFileSync(file, "utf8").trim(),
    stop: () => {
      child.kill();
      rmSync(folder, { recursive: true });
    },
  };
}

function heard(child: ChildProcess): () => string {
  let said = "";
  child.stderr!.on("data", (piece: Buffer) => {
    said += piece.toString();
  });
  return () => said;
}
