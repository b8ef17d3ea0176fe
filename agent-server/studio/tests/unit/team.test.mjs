import assert from "node:assert/strict";
import { test } from "node:test";
import { TeamFold, sender } from "../../page/lib/team.js";

const record = (seq, change, member = null) => ({ seq, time: 1000 + seq, member, change });
const sent = (from, to, text) => ({ sent: { message: { number: 1, from, to, broadcast: false, parts: [{ text: { text } }], time: 1 } } });
const event = (seq, kind, run = "r1") => ({ position: { seq, after: 0 }, ids: { run_id: run, depth: 0 }, kind });

test("messages, members and tasks are told in their order, with who they belong to", () => {
  const fold = new TeamFold();
  fold.change(record(1, { started: { run: "r1" } }));
  fold.change(record(2, { spawned: { member: "builder-1" } }, "leader"));
  fold.change(record(3, { task: { task: { id: "T-001", title: "Build", status: "pending" }, by: { member: "leader" } } }, "leader"));
  fold.change(record(4, sent({ member: "leader" }, ["builder-1"], "Begin.")));
  fold.change(record(5, { turn_ended: { member: "builder-1", end: { failed: { error: "no disk" } } } }, "builder-1"));
  fold.change(record(6, { ended: { reason: "finished" } }));
  assert.deepEqual(fold.items.map(({ by, kind, text }) => [by, kind, text]), [
    ["team", "note", "The run started."],
    ["builder-1", "note", "joined the team"],
    ["leader", "task", "T-001 Build"],
    ["leader", "message", "Begin."],
    ["builder-1", "problem", "no disk"],
    ["team", "note", "The run ended: finished."],
  ]);
  assert.deepEqual(fold.of("builder-1").map((item) => item.text), ["joined the team", "Begin.", "no disk"]);
});

test("a change or an answer that comes again after a reconnect is told once", () => {
  const fold = new TeamFold();
  const joined = record(2, { spawned: { member: "a-1" } });
  const said = event(7, { model_answered: { message: { blocks: [{ text: { text: "Hi." } }] } } });
  for (let times = 0; times < 2; times += 1) {
    fold.change(joined);
    fold.run("a-1", said);
  }
  assert.deepEqual(fold.items.map((item) => item.text), ["joined the team", "Hi."]);
});

test("text is shown while a member writes it, and replaced by the answer", () => {
  const fold = new TeamFold();
  for (const delta of ["He", "llo"]) fold.run("leader", event(3, { chunk: { text: { index: 0, delta } } }));
  assert.equal(fold.writing.get("leader"), "Hello");
  const message = { blocks: [{ text: { text: "Hello." } }, { tool_call: { id: "c", name: "message", arguments: "{}" } }] };
  fold.run("leader", event(4, { model_answered: { message } }));
  assert.equal(fold.writing.has("leader"), false);
  assert.deepEqual(fold.items.map(({ text, calls }) => [text, calls]), [["Hello.", ["message"]]]);
});

test("a sender is the user, the team or a member", () => {
  assert.deepEqual(["user", "team", { member: "a-1" }, null].map(sender), ["user", "team", "a-1", ""]);
});
