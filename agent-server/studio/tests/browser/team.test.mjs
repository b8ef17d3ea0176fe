// A team in the studio: it is started, watched, asked and written to.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, picture, serious, studio } from "./harness.mjs";

const TEAM = new URL("../agents/team.yaml", import.meta.url).pathname;

let browser, server;
before(async () => {
  [browser, server] = [await launch(), await studio({ agents: [TEAM] })];
});
after(async () => {
  await browser.close();
  await server.stop();
});

test("a person starts a team, sees its members, board and waits, answers a member and reads the result", async () => {
  const { page, check, close } = await open(browser, server.url);
  await page.getByRole("link", { name: "Teams" }).click();
  await page.getByLabel("Task", { exact: true }).fill("Build the change.");
  await page.getByLabel("Session").fill("v2");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("heading", { name: "Members" }).waitFor();
  await page.getByRole("button", { name: "builder-1" }).waitFor();
  const board = page.getByRole("region", { name: "Task board" });
  await board.getByText("blocked").waitFor();
  await page.getByText("Which colour?").waitFor();
  await page.getByText("builder-1 waits for user").waitFor();
  await picture(page, "team");
  assert.deepEqual(await serious(page), []);
  await page.getByLabel("red").check();
  await page.getByRole("button", { name: "Answer" }).click();
  await page.getByText("The run ended: finished.").waitFor();
  await page.getByText("T-001 is done.").waitFor();
  await board.getByText("completed").waitFor();
  await page.getByRole("button", { name: "builder-1" }).click();
  await page.getByRole("heading", { name: "Messages of builder-1" }).waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("textbox", { name: "Message" }).fill("Once more.");
  await page.getByRole("button", { name: "Start a run" }).click();
  await page.getByRole("button", { name: "builder-2" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("The run ended: stopped.").waitFor();
  check();
  await close();
});

test("on a phone and in the dark, the page of a team has no serious findings", async () => {
  const { page, check, close } = await open(browser, `${server.url}#/team/release/v2`, { width: 390, height: 800, scheme: "dark" });
  await page.getByRole("heading", { name: "Messages" }).waitFor();
  assert.deepEqual(await serious(page), []);
  check();
  await close();
});
