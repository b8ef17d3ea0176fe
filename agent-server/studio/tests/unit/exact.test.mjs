// Numbers that JavaScript would round.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../../page/lib/exact.js";
import { pretty } from "../../page/lib/messages.js";

test("a whole number keeps its digits where the engine has raw JSON", { skip: !JSON.rawJSON }, () => {
  const text = '{"channel":1234567890123456789,"n":[12345678901234567890123],"x":1.5}';
  assert.equal(JSON.stringify(parse(text)), text);
  assert.match(pretty(text), /1234567890123456789,/);
});

test("a decimal keeps its digits where the engine has raw JSON", { skip: !JSON.rawJSON }, () => {
  const text = '{"amount":123456789012345678.9,"pi":3.14159265358979323846,"share":0.1,"huge":1e400}';
  assert.equal(JSON.stringify(parse(text)), text);
});

test("other values are what JSON says", () => {
  assert.deepEqual(parse('{"a":[1,-2.5e3,"12345678901234567890"],"b":null}'), { a: [1, -2500, "12345678901234567890"], b: null });
});
