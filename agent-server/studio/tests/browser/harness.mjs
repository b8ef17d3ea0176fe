// Test harness: a browser, the real server behind the page, and a scripted model.
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before } from "../mock.mjs";
import { serve as serveModel } from "../model.mjs";

// The tests' packages are installed below target/, not beside the tests.
const require = createRequire(`${process.env.STUDIO_PACKAGES}/`);
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;

const FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS.split(" ") });

const here = (file) => new URL(`../${file}`, import.meta.url).pathname;

export const SUPPORT = here("agents/support.yaml");

/**
 * Starts `agent studio`, or another command, over a new store, with the support agent unless
 * `agents` says otherwise.
 */
export async function studio({ store, agents = [SUPPORT], options = [], command } = {}) {
  const model = await serveModel();
  const place = store ?? join(mkdtempSync(join(tmpdir(), "studio-")), "runs.db");
  const env = { ...process.env, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "none" };
  const child = spawn(process.env.AGENT, [...(command ?? ["studio", place, ...agents]), "--listen", "127.0.0.1:0", ...options], { env, stdio: ["ignore", "inherit", "pipe"] });
  const url = await new Promise((found, failed) => {
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
      const match = /http:\/\/[\d.]+:\d+/.exec(said);
      if (match) found(`${match[0]}/studio/`);
    });
    child.on("exit", (code) => failed(new Error(`the studio ended with ${code}: ${said}`)));
  });
  const disk = process.env.STUDIO_FROM_DISK ? await before(url) : null;
  const stop = async (signal = "SIGINT") => {
    disk?.close();
    child.removeAllListeners("exit");
    const over = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    await over;
    model.server.closeAllConnections();
    model.server.close();
  };
  return { url: disk?.url ?? url, store: place, stop };
}

/** Starts the server over a store with these lines of an export. */
export async function ofLines(lines) {
  const file = join(mkdtempSync(join(tmpdir(), "studio-")), "lines.jsonl");
  writeFileSync(file, lines.join("\n"));
  const env = { ...process.env, STUDIO_LINES: file };
  const child = spawn(process.env.STUDIO_SERVER, ["--ignored", "--nocapture", "the_session_of_a_file"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((found, failed) => {
    let said = "";
    child.stdout.on("data", (text) => {
      said += text;
      const match = /http:\/\/[\d.]+:\d+\/studio\//.exec(said);
      if (match) found(match[0]);
    });
    child.on("exit", (code) => failed(new Error(`the server ended with ${code}: ${said}`)));
  });
  return { url, stop: () => child.kill() };
}

/**
 * Opens a page whose `check()` fails the test after console output, an exception or a violation of
 * the page's policy.
 */
export async function open(browser, url, { width = 1280, height = 800, scheme = "light", ...more } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce", ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const faults = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`thrown: ${error.stack}`));
  page.on("requestfailed", (request) => request.failure().errorText !== "net::ERR_ABORTED" && faults.push(`not loaded: ${request.url()}`));
  await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  await page.goto(url);
  const check = () => {
    if (faults.length) throw new Error(faults.join("\n"));
  };
  return { page, faults, check, close: () => context.close() };
}

/**
 * Describes serious and critical axe findings. Runs through the debugger, since the page's policy
 * forbids injected scripts.
 */
export async function serious(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
}

/** Sends a message in the open chat. */
export async function say(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
}

/** Begins a chat in a session of this name. */
export async function begin(page, url, session, text) {
  await page.goto(`${url}#/new`);
  await page.getByLabel("Session").fill(session);
  await say(page, text);
  await page.waitForURL((at) => at.hash.startsWith(`#/session/${session}`));
}

/** Takes a screenshot for the documentation, if enabled. */
export async function picture(page, name) {
  if (process.env.STUDIO_PICTURES) await page.screenshot({ path: join(process.env.STUDIO_PICTURES, `studio-${name}.png`) });
}
