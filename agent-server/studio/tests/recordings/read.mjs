// Recordings of real runs, made by `agent export`, and a large one that is composed of the same
// kinds of entries.
import { readFileSync } from "node:fs";
import { Fold } from "../../page/lib/fold.js";

export function entries(name) {
  const text = readFileSync(new URL(`${name}.jsonl`, import.meta.url), "utf8");
  return text.trim().split("\n").map((line) => JSON.parse(line).entry);
}

export function folded(all) {
  const fold = new Fold();
  for (const entry of all) fold.apply(entry);
  return fold;
}

/** Returns a session of one long run with at least `wanted` entries. */
export function large(wanted, session = "large") {
  const all = [];
  const run = "run-large";
  let time = 1_795_639_500_000;
  const push = (body, after = 3) => all.push({ seq: all.length + 1, run, time: (time += after), version: 1, body });
  const ids = { agent: "support", agent_id: "support", run_id: run, root_run_id: run, path: "support", session, depth: 0 };
  push({ run_started: { ids, fingerprint: "agent: support" } });
  push({ message_appended: { message: { user: { parts: [{ text: { text: "Look everything up." } }] } } } });
  for (let step = 1; all.length < wanted - 3; step += 1) {
    const calls = [0, 1].map((at) => ({ id: `call-${step}-${at}`, name: "look_up", arguments: JSON.stringify({ number: `A-${step}-${at}` }) }));
    const usage = { calls: 1, input: 900 + step, cached: 500, cache_write: 0, cache_write_long: 0, output: 40, reasoning: 0, cost: 1200, priced: 1 };
    const blocks = [{ text: { text: `I look up number **${step}**.` } }, ...calls.map((call) => ({ tool_call: call }))];
    push({ model_finished: { step, response: { message: { blocks }, finish: "tool_calls", usage, model: "gpt-5-mini" } } }, 400);
    push({ model_accepted: { step } });
    for (const call of calls) push({ tool_started: { call_id: call.id, name: call.name, effect: "pure", attempt: "one" } });
    for (const call of calls) {
      push({ tool_finished: { call_id: call.id, output: { parts: [{ text: { text: `Number ${call.id}: a teapot` } }] } } }, 60);
      push({ tool_answered: { call_id: call.id, name: call.name } });
    }
    push({ state_changed: { globals: { looked_up: step } } });
    push({ turn_ended: { step } });
  }
  const usage = { calls: 1, input: 900, cached: 0, cache_write: 0, cache_write_long: 0, output: 40, reasoning: 0, cost: 1200, priced: 1 };
  push({ model_finished: { step: 1e5, response: { message: { blocks: [{ text: { text: "Everything was looked up." } }] }, finish: "stop", usage, model: "gpt-5-mini" } } }, 400);
  push({ model_accepted: { step: 1e5, exit: { reason: "text", answer: "Everything was looked up." } } });
  push({ run_ended: { status: { finished: "text" }, usage } });
  return all;
}
