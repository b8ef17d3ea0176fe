import assert from "node:assert/strict";
import { test } from "node:test";
import { news, told } from "../../page/lib/conversation.js";
import { transcript } from "../../page/lib/fold.js";
import { outputText, role } from "../../page/lib/messages.js";
import { path, rows } from "../../page/lib/tree.js";
import { entries, folded, large } from "../recordings/read.mjs";

const shop = () => folded(entries("shop"));
const ofKind = (fold, kind) => fold.tree.nodes.filter((node) => node.kind === kind);

test("a recorded session becomes its runs, with their steps, calls and tools below them", () => {
  const fold = shop();
  assert.deepEqual(fold.tree.roots.map((node) => node.status.word), ["finished", "cancelled", "finished", "finished"]);
  const steps = fold.tree.roots[3].children.filter((node) => node.kind === "step");
  assert.deepEqual(steps.map((step) => step.children.map((node) => node.kind)), [
    ["model", "tool"],
    ["model", "wait", "tool", "state", "state"],
    ["model", "state"],
  ]);
  assert.equal(fold.usage.calls, 9);
});

test("a sub-agent's run stands below the call that started it", () => {
  const reader = ofKind(shop(), "run").find((node) => node.label === "reader");
  assert.deepEqual(path(reader).map((node) => node.label), ["support", "Step 1", "delegate", "reader"]);
  assert.equal(reader.depth, 3);
  assert.equal(reader.parent.below, reader.run);
});

test("a run's use counts what is below it, and its own apart", () => {
  const [first] = shop().tree.roots;
  assert.equal(first.usage.calls, 2);
  assert.equal(first.below.calls, 4);
});

test("each model call names what it was told, and what of that is new", () => {
  const calls = ofKind(shop(), "model").filter((node) => node.run === shop().newest().id);
  const [first, second] = calls;
  assert.deepEqual(told(first.request).at(-1), { user: { parts: [{ text: { text: "A refund, please." } }] } });
  const change = news(second.previous, second.request);
  assert.equal(change.same, first.request.length);
  assert.deepEqual(change.fresh.map(role), ["assistant", "tool"]);
  assert.deepEqual(change.gone, []);
});

test("a question is open until it is answered, and the answer's edit is what the tool was given", () => {
  const all = entries("shop");
  const asked = all.findIndex((entry) => entry.body.asked);
  const before = folded(all.slice(0, asked + 1));
  assert.equal(before.questions.size, 1);
  const after = folded(all);
  assert.equal(after.questions.size, 0);
  const wait = ofKind(after, "wait").find((node) => node.question);
  assert.deepEqual(wait.reply, { decision: "edit", arguments: { number: "A-18" } });
  const tool = ofKind(after, "tool").find((node) => node.label === "refund");
  assert.match(outputText(tool.answer), /changed by the user to: \{"number":"A-18"\}/);
});

test("folding entry by entry, in pages or twice gives the same", () => {
  const all = entries("shop");
  const fold = folded([...all.slice(0, 30), ...all.slice(10, 50), ...all]);
  assert.equal(fold.version, all.length);
  assert.deepEqual(fold.tree.nodes.map((node) => [node.kind, node.label, node.depth]), shop().tree.nodes.map((node) => [node.kind, node.label, node.depth]));
});

test("a run that was undone is marked, and the conversation is as it was before it", () => {
  const all = entries("garden");
  const second = all.findLast((entry) => entry.body.run_started);
  const undone = { seq: all.length + 1, run: second.run, time: second.time, version: 1, body: { undone: { before_run: second.run } } };
  const fold = folded([...all, undone]);
  const [one, two] = [...fold.runs.values()];
  assert.deepEqual([one.undone, two.undone], [false, true]);
  assert.deepEqual(told(two.conversation.request()), told(two.began));
  assert.ok(two.began.length > 0);
});

test("after a compaction, the next call is told the new history and what is gone", () => {
  const all = entries("garden").slice(0, 25);
  const { run, time } = all.at(-1);
  const summary = { user: { parts: [{ text: { text: "In short: bees." } }] } };
  const entry = (body, at) => ({ seq: all.length + at, run, time: time + at, version: 1, body });
  const response = { message: { blocks: [{ text: { text: "Yes." } }] }, finish: "stop", usage: { calls: 1, input: 1, cached: 0, cache_write: 0, output: 1 }, model: "offline" };
  const fold = folded([...all, entry({ model_finished: { step: 1, response } }, 1), entry({ model_accepted: { step: 1 } }, 2), entry({ history_replaced: { reason: "compacted", before: 9, history: [summary] } }, 3), entry({ model_finished: { step: 2, response } }, 4)]);
  const last = ofKind(fold, "model").at(-1);
  const change = news(last.previous, last.request);
  assert.deepEqual([change.same, change.fresh], [0, [summary]]);
  assert.ok(change.gone.length >= 6);
  assert.match(ofKind(fold, "compaction")[0].detail, /9 messages, now 1/);
});

test("a budget's reservations are set aside until they are settled", () => {
  const all = entries("garden").slice(0, 2);
  const { run, time } = all.at(-1);
  const entry = (body, at) => ({ seq: all.length + at, run, time, version: 1, body });
  const amounts = { tokens: 100, cost: 2000, model_calls: 1, tool_calls: 0 };
  const set = [...all, entry({ budget_reserved: { call: 0, amounts } }, 1)];
  assert.deepEqual([...folded(set).runs.get(run).budget.reserved.values()], [amounts]);
  const { budget } = folded([...set, entry({ budget_settled: { call: 0, amounts: { ...amounts, tokens: 60 } } }, 2)]).runs.get(run);
  assert.equal(budget.reserved.size, 0);
  assert.equal(budget.used.tokens, 60);
});

test("events that no journal has are rows as long as the page is open", () => {
  const fold = folded(entries("garden").slice(0, 3));
  const { run } = entries("garden")[0];
  const now = fold.last + 500;
  fold.passing(run, { retry: { attempt: 2, delay: 1.5, kind: "Overloaded", error: "too busy" } }, now);
  fold.passing(run, { chunk: { text: { index: 0, delta: "x" } } });
  const node = fold.tree.nodes.at(-1);
  assert.deepEqual([node.kind, node.label, node.parent.label, node.passing], ["retry", "retry 2", "Step 1", true]);
  assert.deepEqual([node.start, node.duration], [now, 1500], "it lasts as long as is waited");
});

test("rows leave out what is below a closed node", () => {
  const fold = shop();
  const [first] = fold.tree.roots;
  assert.equal(rows([first], new Set()).length, ofBelow(first) + 1);
  assert.deepEqual(rows([first], new Set([first.id])), [first]);
  const kinds = rows([first], new Set(), (node) => node.kind === "model").map((node) => node.kind);
  assert.deepEqual(kinds, ["model", "model", "model", "model"]);
});

const ofBelow = (node) => node.children.reduce((sum, child) => sum + 1 + ofBelow(child), 0);

test("a transcript tells a run step by step", () => {
  const blocks = transcript(shop().newest());
  assert.deepEqual(blocks.map((block) => block.title), ["Asked", "Step 1", "Step 2", "Step 3"]);
  assert.match(blocks[2].text, /calls refund/);
  assert.match(blocks[0].text, /A refund, please/);
});

test("folding takes time in proportion: the second half of a large run costs about what the first did", () => {
  const all = large(50_000);
  const fold = folded([]);
  const half = all.length / 2;
  const time = (part) => {
    const start = process.cpuUsage();
    for (const entry of part) fold.apply(entry);
    const { user, system } = process.cpuUsage(start);
    return user + system;
  };
  const [first, second] = [time(all.slice(0, half)), time(all.slice(half))];
  assert.ok(second < first * 4 + 50_000, `${first} and then ${second} microseconds`);
  assert.equal(fold.changes.at(-1).before, fold.changes.at(-2).value);
});
