// Other ways to start it: read-only, over a store without agents, and with a session that is not there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { launch, open, studio } from "./harness.mjs";

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
      await it.page.getByText("There is no such session").waitFor();
      // The browser itself tells of the 404.
      assert.deepEqual(it.faults.filter((fault) => !fault.includes("404")), []);
    } finally {
      await browser.close();
      await server.stop();
    }
  });
}
