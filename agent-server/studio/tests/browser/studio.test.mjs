// User scenarios in a real browser against the real server with a scripted model.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { begin, launch, open, picture, say, serious, studio } from "./harness.mjs";

let browser;
let server;

before(async () => {
  [browser, server] = await Promise.all([launch(), studio()]);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A test on a new page, which must not leave errors behind. */
const onPage = (name, run, options) =>
  test(name, async () => {
    const it = await open(browser, server.url, options);
    try {
      await run(it.page, it);
      it.check();
    } catch (error) {
      error.message += it.faults.length ? `\nfaults: ${it.faults.join("\n")}` : "";
      await it.page.screenshot({ path: `${process.env.STUDIO_PACKAGES}/failed.png` });
      throw error;
    } finally {
      await it.close();
    }
  });

const tab = (page, name) => page.getByRole("tab", { name, exact: true }).click();
const row = (page, text) => page.getByRole("treeitem").filter({ hasText: text });
const finished = (page) => page.locator(".session .head .badge", { hasText: "finished" }).waitFor();

onPage("a chat streams Markdown, with code and tables, and nothing in it is run", async (page) => {
  await begin(page, server.url, "markdown", "Show me markdown.");
  const answer = page.locator(".turn:not(.user)").last();
  await answer.getByRole("heading", { name: "A kettle" }).waitFor();
  await finished(page);
  await answer.locator("table").waitFor();
  assert.match(await answer.locator("figure pre").innerText(), /println!/);
  assert.match(await answer.innerText(), /<script>/, "HTML is shown as text");
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.equal(await answer.locator("img, script").count(), 0);
  await picture(page, "chat");
});

onPage("a picture goes with a message and is shown, and a file that is too large is left out", async (page) => {
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await page.goto(`${server.url}#/new`);
  await page.getByLabel("Session").fill("picture");
  const files = page.locator("input[type=file]");
  await files.setInputFiles({ name: "large.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(6 << 20) });
  await page.getByText("large.bin is too large").waitFor();
  await files.setInputFiles({ name: "pot.png", mimeType: "image/png", buffer: Buffer.from(pixel, "base64") });
  await page.getByRole("button", { name: "Remove pot.png" }).waitFor();
  await say(page, "What is this?");
  const shown = page.getByRole("img", { name: "pot.png" });
  await shown.waitFor();
  assert.equal(await shown.evaluate((image) => image.naturalWidth), 1);
  await page.getByText("You said: What is this?").waitFor();
});

onPage("what an agent says is seen while it says it, and a run can be stopped and gone on with", async (page) => {
  await begin(page, server.url, "slow", "Tell it slowly.");
  await page.locator(".turn .prose", { hasText: "never boils" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".session .head .badge", { hasText: "cancelled" }).waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.locator(".session .head .badge", { hasText: "running" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".session .head .badge", { hasText: "cancelled" }).waitFor();
});

onPage("a call is approved with an edit of its arguments", async (page) => {
  await begin(page, server.url, "approval", "A refund, please.");
  await page.getByRole("heading", { name: "May refund run?" }).waitFor();
  await picture(page, "approval");
  await page.getByRole("button", { name: "Edit arguments" }).click();
  const field = page.getByLabel("Arguments, as a JSON object");
  await field.fill("{broken");
  await page.getByRole("button", { name: "Run with these" }).click();
  await page.getByRole("alert").filter({ hasText: "Invalid JSON" }).waitFor();
  await field.fill('{"number": "A-18"}');
  await page.getByRole("region", { name: "Your changes" }).waitFor();
  await page.getByRole("button", { name: "Run with these" }).click();
  await page.getByText("Have a good day!").waitFor();
  await tab(page, "Trace");
  await page.locator(".node.wait", { hasText: "refund" }).click();
  await page.getByRole("region", { name: "The edit of the arguments" }).getByText("A-18").waitFor();
});

onPage("a call is rejected with a reason that the model is told", async (page) => {
  await begin(page, server.url, "rejected", "A refund, please.");
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByLabel("Why not?").fill("not today");
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByText("refund: rejected").waitFor();
  await finished(page);
  await page.locator(".call", { hasText: "refund" }).locator("summary").click();
  await page.locator(".call", { hasText: "not today" }).waitFor();
});

onPage("the trace shows runs, steps, calls and the run below, and what a call was told that the one before was not", async (page) => {
  await begin(page, server.url, "trace", "Ask the reader.");
  await finished(page);
  await tab(page, "Trace");
  await row(page, "reader").filter({ hasText: "→" }).first().waitFor();
  assert.equal(await row(page, "Step 2").count(), 2, "one of the run and one of the run below");
  await row(page, "The reader found").click();
  const details = page.getByRole("region", { name: "Details" });
  await details.getByText("result of delegate").waitFor();
  await details.getByText(/1 message as before, 0 gone, 2 new/).waitFor();
  await picture(page, "trace");
  await details.getByRole("tab", { name: /Request/ }).click();
  await details.getByText("Ask the reader.").waitFor();
  await details.getByRole("tab", { name: "Answer" }).click();
  await details.getByText("As the provider sent it").click();
  await details.getByLabel("The provider's answer").waitFor();
});

onPage("the flame chart has a span for what took time, and choosing one shows it", async (page) => {
  await begin(page, server.url, "flame", "Plan it.");
  await finished(page);
  await tab(page, "Flame chart");
  const canvas = page.getByRole("img", { name: /Flame chart/ });
  const { width, height } = await canvas.boundingBox();
  assert.ok(height > 24 + 4 * 22, "three tools side by side, below the model's calls and the run");
  await canvas.click({ position: { x: width / 2, y: 24 + 10 } });
  await page.getByRole("heading", { name: "Run of support" }).waitFor();
  await canvas.focus();
  for (const key of ["+", "+", "ArrowRight", "0"]) await page.keyboard.press(key);
  await picture(page, "flame");
});

onPage("a run is forked with an edit, and the two stand side by side", async (page) => {
  await begin(page, server.url, "forked", "Plan it.");
  await finished(page);
  await tab(page, "Trace");
  await row(page, "support").first().click();
  await page.getByRole("button", { name: "Fork from the start" }).click();
  const dialog = page.getByRole("dialog", { name: "Fork" });
  await dialog.getByLabel("New session").fill("the-fork");
  await dialog.getByLabel("User message").fill("Say something else.");
  await dialog.getByRole("button", { name: "Fork with this" }).click();
  await page.waitForURL((at) => at.hash.startsWith("#/session/the-fork"));
  await page.getByText("You said: Say something else.").waitFor();
  await page.goto(`${server.url}#/compare?a=forked&b=the-fork`);
  await page.getByRole("status").filter({ hasText: "3 of 3 steps differ; the first is asked." }).waitFor();
  await page.locator(".diff.two .plus", { hasText: "You said: Say something else." }).waitFor();
  await picture(page, "compare");
});

onPage("a replay of a run goes the same way", async (page) => {
  await begin(page, server.url, "replayed", "Plan it.");
  await finished(page);
  await tab(page, "Trace");
  await row(page, "support").first().click();
  await page.getByRole("button", { name: "Replay" }).click();
  await page.getByText("Replay matches: finished.").waitFor();
});

onPage("values are shown over time", async (page) => {
  await begin(page, server.url, "state", "A refund, please.");
  await page.getByRole("button", { name: "Edit arguments" }).click();
  await page.getByLabel("Arguments, as a JSON object").fill('{"number": "A-19"}');
  await page.getByRole("button", { name: "Run with these" }).click();
  await finished(page);
  await tab(page, "State");
  const changes = page.getByRole("listbox", { name: "Changes over time" }).getByRole("option");
  await changes.first().click();
  await page.getByRole("region", { name: "What changed" }).getByText("A-19").waitFor();
  await changes.last().click();
  await page.getByText("Removed.").waitFor();
});

onPage("sessions are found by what was said in them, and a chat goes on", async (page) => {
  await begin(page, server.url, "needle", "Where is the samovar?");
  await finished(page);
  await page.goto(`${server.url}#/sessions`);
  await page.getByRole("searchbox").fill("samovar");
  await page.getByRole("link", { name: /needle/ }).waitFor();
  await page.getByRole("searchbox").fill("nothing has this");
  await page.getByText("No results").waitFor();
  await page.getByRole("searchbox").fill("samovar");
  await page.getByRole("link", { name: /needle/ }).click();
  await say(page, "And the kettle?");
  await page.getByText("You said: And the kettle?").waitFor();
});

onPage("a title is set, the last run undone, and a session deleted only after it was asked", async (page) => {
  await begin(page, server.url, "spared", "Hello.");
  await finished(page);
  await begin(page, server.url, "doomed", "Hello.");
  await finished(page);
  const choose = async (name) => {
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name }).click();
  };
  await choose("Give it a title");
  await page.getByRole("textbox", { name: "Title" }).fill("To be deleted");
  await page.getByRole("button", { name: "Set" }).click();
  await page.getByRole("heading", { name: "To be deleted" }).waitFor();
  await choose("Undo the last run");
  await page.getByRole("button", { name: "Undo it" }).click();
  await page.locator(".turn.undone").first().waitFor();
  await choose("Delete the session");
  await page.getByRole("button", { name: "Cancel" }).click();
  await choose("Delete the session");
  await page.getByRole("button", { name: "Delete it" }).click();
  await page.waitForURL((at) => at.hash.startsWith("#/sessions"));
  await page.getByRole("link", { name: /spared/ }).waitFor();
  assert.equal(await page.getByRole("link", { name: /doomed/ }).count(), 0);
});

onPage("all runs under way are seen live, with what waits", async (page) => {
  await begin(page, server.url, "live", "Tell it slowly.");
  await page.goto(`${server.url}#/live`);
  const now = page.getByRole("region", { name: "Active runs" });
  await now.getByText("live", { exact: true }).waitFor();
  await now.getByRole("button", { name: /Stop the run of live/ }).click();
  await now.getByText("No active runs").waitFor();
});

onPage("everything can be done with the keyboard alone", async (page) => {
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await press("n");
  const message = page.getByRole("textbox", { name: "Message" });
  await message.waitFor();
  await message.focus();
  await page.keyboard.type("A refund, please.");
  await press("Enter");
  const approve = page.getByRole("button", { name: "Approve" });
  await approve.waitFor();
  const isThere = () => approve.evaluate((it) => it === document.activeElement);
  for (let tries = 0; tries < 40 && !(await isThere()); tries += 1) await press("Shift+Tab");
  assert.ok(await isThere(), "the button is reached by Tab");
  assert.notEqual(await approve.evaluate((it) => getComputedStyle(it).outlineStyle), "none", "and it is seen where the focus is");
  await press("Enter");
  await finished(page);
  await page.locator("#content").focus();
  await press("2");
  const tree = page.getByRole("tree");
  await tree.waitFor();
  await tree.focus();
  await press("Home", "ArrowLeft");
  await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length === 1);
  await press("ArrowRight");
  const chosen = page.locator("[role=treeitem][aria-selected=true]");
  for (let tries = 0; tries < 6 && !(await chosen.innerText()).includes("Step 1"); tries += 1) await press("ArrowDown");
  await page.getByRole("heading", { name: "Step 1" }).waitFor();
  await press("Escape");
  await page.locator("#content").focus();
  await press("g", "q");
  await page.getByRole("heading", { name: "Questions" }).waitFor();
  await press("/");
  await page.waitForFunction(() => document.activeElement?.id === "search");
});

for (const scheme of ["light", "dark"]) {
  onPage(`no view has a serious fault for people who use other means: ${scheme}`, async (page) => {
    await begin(page, server.url, `axe-${scheme}`, "A refund, please.");
    await page.getByRole("button", { name: "Approve" }).waitFor();
    const found = {};
    for (const place of ["live", "sessions", "questions", "new", `session/axe-${scheme}/chat`, `session/axe-${scheme}/trace?at=4`, `session/axe-${scheme}/flame`, `session/axe-${scheme}/state`, `compare?a=axe-${scheme}&b=axe-${scheme}`]) {
      await page.goto(`${server.url}#/${place}`);
      await page.waitForTimeout(400);
      const faults = await serious(page);
      if (faults.length) found[place] = faults;
    }
    await page.keyboard.press("Escape");
    await page.locator("#content").focus();
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    const faults = await serious(page);
    if (faults.length) found.help = faults;
    assert.deepEqual(found, {});
  }, { scheme });
}

onPage("at the width of a phone nothing is cut off, and all can be reached", async (page) => {
  await begin(page, server.url, "phone", "A refund, please.");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  for (const place of ["live", "sessions", "questions", "new", "session/phone/chat", "session/phone/trace", "session/phone/flame", "session/phone/state", "compare?a=phone&b=phone"]) {
    await page.goto(`${server.url}#/${place}`);
    await page.waitForTimeout(250);
    const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.querySelector("main").scrollWidth));
    assert.ok(wide <= 360, `${place} is ${wide} wide`);
  }
  await page.goto(`${server.url}#/session/phone/trace`);
  await row(page, "look_up").last().click();
  await page.getByRole("button", { name: "← Trace" }).click();
  await page.getByRole("tree").waitFor();
}, { width: 360, height: 720 });
