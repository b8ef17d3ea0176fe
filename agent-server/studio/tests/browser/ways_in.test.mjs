// Other configurations: read-only, a store without agents, and a server that requires a key.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SUPPORT, begin, launch, open, say, serious, studio } from "./harness.mjs";

const store = join(mkdtempSync(join(tmpdir(), "studio-")), "runs.db");
execFileSync(process.env.AGENT, ["run", "--store", store, "--session", "by/hand", "Where is the kettle?"], { stdio: "ignore" });

for (const options of [[], ["--read-only"]]) {
  test(`a store that the program wrote is looked at ${options.length ? "read-only" : "without an agent"}`, async () => {
    const [browser, server] = await Promise.all([launch(), studio({ store, agents: [], options })]);
    const it = await open(browser, server.url);
    try {
      await it.page.getByRole("link", { name: "Sessions" }).click();
      await it.page.getByRole("link", { name: /by\/hand/ }).click();
      await it.page.getByText("Where is the kettle?").waitFor();
      assert.equal(await it.page.getByRole("textbox", { name: "Message" }).count(), 0);
      await it.page.getByRole("tab", { name: "Trace" }).click();
      await it.page.getByRole("treeitem").first().click();
      assert.equal(await it.page.getByRole("button", { name: "Replay" }).count(), options.length ? 0 : 1);
      await it.page.goto(`${server.url}#/session/none`);
      await it.page.getByText("Session not found").waitFor();
      // The browser itself logs the 404.
      assert.deepEqual(it.faults.filter((fault) => !fault.includes("404")), []);
    } finally {
      await browser.close();
      await server.stop();
    }
  });
}

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("a file is uploaded where the server keeps files, and shown from there", async () => {
  const folder = mkdtempSync(join(tmpdir(), "studio-"));
  const [browser, server] = await Promise.all([launch(), studio({ command: ["serve", SUPPORT, "--store", "memory", "--files", folder] })]);
  const it = await open(browser, server.url);
  const { page } = it;
  try {
    await page.goto(`${server.url}#/new`);
    await page.getByLabel("Session").fill("picture");
    await page.locator("input[type=file]").setInputFiles({ name: "pot.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") });
    await page.getByRole("button", { name: "Remove pot.png" }).waitFor();
    await say(page, "What is this?");
    const shown = page.getByRole("img", { name: "pot.png" });
    await shown.waitFor();
    assert.match(await shown.getAttribute("src"), /^blob:/);
    assert.equal(await shown.evaluate((image) => image.decode().then(() => image.naturalWidth)), 1);
    assert.deepEqual(it.faults, []);
  } finally {
    await browser.close();
    await server.stop();
  }
});

test("a server with keys asks for one, which is kept in the tab and never in an address", async () => {
  const keys = join(mkdtempSync(join(tmpdir(), "studio-")), "keys.json");
  const secret = execFileSync(process.env.AGENT, ["serve", "--new-key", "ada", "--keys", keys], { encoding: "utf8" }).trim();
  const command = ["serve", SUPPORT, "--store", "memory", "--keys", keys, "--files", mkdtempSync(join(tmpdir(), "studio-"))];
  const [browser, server] = await Promise.all([launch(), studio({ command })]);
  const it = await open(browser, server.url);
  const { page } = it;
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  try {
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.deepEqual(await serious(page), []);
    await page.getByLabel("Key").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").filter({ hasText: "rejected this key" }).waitFor();
    await page.getByLabel("Key").fill(secret);
    await page.keyboard.press("Enter");
    await page.getByText("No active runs").waitFor();
    await begin(page, server.url, "with-a-key", "Hello.");
    await page.getByText("You said: Hello.").waitFor();
    await page.reload();
    await page.getByText("You said: Hello.").waitFor();
    await page.locator("input[type=file]").setInputFiles({ name: "pot.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") });
    await page.getByRole("button", { name: "Remove pot.png" }).waitFor();
    await say(page, "What is this?");
    const shown = page.getByRole("img", { name: "pot.png" });
    await shown.waitFor();
    assert.equal(await shown.evaluate((image) => image.decode().then(() => image.naturalWidth)), 1, "it is fetched with the key");
    assert.ok(asked.length > 10 && !asked.some((url) => url.includes(secret)));
    assert.ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes(secret));
    const other = await (await browser.newContext()).newPage();
    await other.goto(server.url);
    await other.getByRole("heading", { name: "Sign in" }).waitFor();
    // The browser itself logs each 401.
    assert.deepEqual(it.faults.filter((fault) => !fault.includes("401")), []);
  } finally {
    await browser.close();
    await server.stop();
  }
});

test("a run whose process died is shown as stopped, nothing goes on by itself, and who goes on too early is told why not", async () => {
  const browser = await launch();
  const first = await studio();
  const it = await open(browser, first.url);
  await begin(it.page, first.url, "dead", "Tell it slowly.");
  await it.page.locator(".turn .prose", { hasText: "never boils" }).waitFor();
  await it.close();
  await first.stop("SIGKILL");
  const second = await studio({ store: first.store });
  const again = await open(browser, `${second.url}#/session/dead`);
  try {
    const badge = again.page.locator(".session .head .badge");
    await badge.filter({ hasText: "stopped" }).waitFor();
    await again.page.getByRole("button", { name: "Resume" }).click();
    await again.page.getByText("its lease expires within half a minute").waitFor();
    // The browser itself logs the 409.
    assert.deepEqual(again.faults.filter((fault) => !fault.includes("409")), []);
  } finally {
    await browser.close();
    await second.stop();
  }
});
