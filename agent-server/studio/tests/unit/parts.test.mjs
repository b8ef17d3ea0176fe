import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageBuilder } from "../../page/lib/chunks.js";
import { columns, difference, sideBySide } from "../../page/lib/diff.js";
import { layout, ticks } from "../../page/lib/flame.js";
import { duration, money, status, used } from "../../page/lib/format.js";
import { rendered } from "../../page/lib/markdown.js";
import { imageUrl } from "../../page/lib/messages.js";
import { link, parse } from "../../page/lib/routes.js";
import { Frames } from "../../page/lib/sse.js";
import { reveal, shown } from "../../page/lib/window.js";
import { entries, folded, large } from "../recordings/read.mjs";

test("frames are read alike however the stream is cut", () => {
  const stream = 'retry: 1000\r\n\r\nid: 12.3\r\ndata: {"a":1}\r\n\r\n: keep-alive\n\nevent: end\ndata: one\ndata: two\n\ndata: cut off';
  const whole = new Frames().push(stream);
  assert.deepEqual(whole, [{ id: "12.3", event: "message", data: '{"a":1}' }, { id: null, event: "end", data: "one\ntwo" }]);
  for (const size of [1, 2, 3, 7]) {
    const frames = new Frames();
    const all = [];
    for (let at = 0; at < stream.length; at += size) all.push(...frames.push(stream.slice(at, at + size)));
    assert.deepEqual(all, whole, `in pieces of ${size}`);
  }
});

test("chunks become the blocks that they are pieces of, and a restart forgets them", () => {
  const builder = new MessageBuilder();
  builder.push({ text: { index: 0, delta: "no" } });
  builder.push("restart");
  for (const chunk of [{ reasoning: { index: 0, delta: "Hm." } }, { text: { index: 1, delta: "Wat" } }, { text: { index: 1, delta: "er" } }, { tool_call: { index: 2, id: "c", name: "boil" } }, { arguments: { index: 2, delta: '{"a":' } }, { arguments: { index: 2, delta: "1}" } }, { end: { index: 2 } }]) builder.push(chunk);
  assert.deepEqual(builder.pieces().map(({ index, ...rest }) => rest), [{ kind: "reasoning", text: "Hm." }, { kind: "text", text: "Water" }, { kind: "tool_call", id: "c", name: "boil", arguments: '{"a":1}' }]);
});

test("no two spans of a lane are there at the same time, and what belongs to a span is below it", () => {
  const { spans, lanes } = layout(folded(entries("shop")).tree.roots, 0);
  const last = new Map();
  const lane = new Map(spans.map((span) => [span.node, span.lane]));
  for (const span of [...spans].sort((one, two) => one.start - two.start)) {
    assert.ok((last.get(span.lane) ?? 0) <= span.start, `${span.node.label} in lane ${span.lane}`);
    last.set(span.lane, span.end);
    for (let above = span.node.parent; above; above = above.parent) if (lane.has(above)) assert.ok(lane.get(above) < span.lane);
    assert.ok(span.lane < lanes);
  }
  assert.equal(spans.filter((span) => span.node.kind === "tool").length, 7);
});

test("what was tried again and what was compacted are in the chart", () => {
  const all = entries("garden").slice(0, 3);
  const { run, time, seq } = all.at(-1);
  const body = { history_replaced: { reason: "compacted", before: 2, history: [] } };
  const fold = folded([...all, { seq: seq + 1, run, time, version: 1, body }]);
  fold.passing(run, { retry: { attempt: 1, delay: 2, kind: "Overloaded", error: "too busy" } }, time);
  const { spans } = layout(fold.tree.roots, time);
  const took = (kind) => spans.filter((span) => span.node.kind === kind).map((span) => span.end - span.start);
  assert.deepEqual([took("compaction"), took("retry")], [[0], [2000]]);
});

test("a large run is laid out in as many lanes as it has things at the same time", () => {
  const { spans, lanes } = layout(folded(large(20_000)).tree.roots, 0);
  assert.ok(spans.length > 5_000);
  assert.ok(lanes <= 4, `${lanes} lanes`);
});

test("the marks of a time axis are round and within it", () => {
  assert.deepEqual(ticks(0, 100, 5), [0, 20, 40, 60, 80, 100]);
  assert.ok(ticks(0.1, 0.9).length <= 2);
});

test("a difference has what went and what came, and folds what is the same", () => {
  const before = Array.from({ length: 40 }, (_, at) => `line ${at}`);
  const now = before.with(20, "another");
  const rows = difference(before.join("\n"), now.join("\n"));
  assert.deepEqual(rows.filter((row) => row.sign !== "same"), [{ sign: "skipped", count: 17 }, { sign: "minus", text: "line 20" }, { sign: "plus", text: "another" }, { sign: "skipped", count: 16 }]);
  const pair = columns(rows).find(({ left }) => left?.sign === "minus");
  assert.equal(pair.right.text, "another");
});

test("two runs are compared step by step, and what one alone has is told", () => {
  const rows = sideBySide([{ title: "Asked", text: "a" }, { title: "Step 1", text: "b" }], [{ title: "Asked", text: "a" }]);
  assert.deepEqual(rows.map((row) => [row.title, row.same, row.right]), [["Asked", true, "a"], ["Step 1", false, null]]);
});

test("Markdown shows HTML as text, and a picture from elsewhere as a link", () => {
  const page = rendered('<script>alert(1)</script>\n\n![x](https://example.org/a.png) <img src=x onerror=alert(1)>\n\n```rust"><b>\nfn main() {}\n```');
  assert.ok(!/<script|<img|<b>/.test(page), page);
  assert.match(page, /<a href="https:\/\/example.org\/a.png">x<\/a>/);
  assert.match(page, /<figcaption><span>rust<\/span>/);
});

test("only pictures that a browser does not run are shown", () => {
  const media = (mime) => ({ source: { base64: "AAAA" }, mime });
  assert.equal(imageUrl(media("image/png")), "data:image/png;base64,AAAA");
  assert.equal(imageUrl(media("image/svg+xml")), null);
  assert.equal(imageUrl({ source: { url: "https://example.org/a.png" }, mime: "image/png" }), null);
});

test("the rows that are drawn are those that are seen and some around, and never outside the list", () => {
  assert.deepEqual(shown(50_000, 30, 30_000, 600, 10), { from: 990, to: 1030 });
  assert.deepEqual(shown(5, 30, 0, 600, 10), { from: 0, to: 5 });
  assert.deepEqual(shown(0, 30, 900, 600, 10), { from: 0, to: 0 });
});

test("a row is brought into sight with as little scrolling as it takes", () => {
  assert.equal(reveal(10, 30, 0, 600), 0);
  assert.equal(reveal(20, 30, 0, 600), 30);
  assert.equal(reveal(9, 30, 300, 600), 270);
  assert.equal(reveal(1000, 30, 0, 600), 30_000 - 285);
});

test("an address keeps any name, and what it says can be read back", () => {
  for (const name of ["garden", "a/b?c#d", "ä %2F"]) assert.deepEqual(parse(link("session", name, "trace", { at: 3 })), { page: "session", name, tab: "trace", query: { at: "3" } });
  assert.equal(parse("").page, "live");
  assert.equal(link("compare", null, null, { a: "x", b: undefined }), "#/compare?a=x");
});

test("figures are short and say their unit", () => {
  assert.deepEqual([money(0), money(1200), money(6_001_200)], ["$0", "$0.0012", "$6.00"]);
  assert.deepEqual([duration(4), duration(1500), duration(90_000), duration(7_300_000)], ["4 ms", "1.5 s", "1 min 30 s", "2 h 1 min"]);
  assert.equal(used({ calls: 1, input: 900, cached: 100, cache_write: 0, output: 40, priced: 1, cost: 1200 }), "1,000 → 40 · $0.0012");
  assert.deepEqual(status({ finished: "text" }), { word: "finished", reason: "text" });
  assert.deepEqual(status("interrupted"), { word: "waiting" });
});
