// Scripted model behind OpenAI's chat completions API: `node model.mjs [PORT]` prints its base URL.
// A word of the newest user message selects the script, and the number of results since then its
// position.
import { createServer } from "node:http";

const call = (name, args) => ({ calls: [{ name, args }] });
const say = (text, pause) => ({ text, pause });

const markdown = `# A kettle

Water boils at **100 °C**, and a kettle says so:

\`\`\`rust
fn main() {
    println!("the kettle boils");
}
\`\`\`

| tea | minutes |
|---|---|
| green | 2 |
| black | 4 |

- a list
- with [a link](https://example.org/)

<script>window.hacked = true</script><img src=x onerror="window.hacked = true">
`;

const scripts = [
  [/refund/i, [call("look_up", { number: "A-17" }), call("refund", { number: "A-17" }), say("A-17 is refunded. Have a good day!")]],
  [/reader/i, [call("delegate", { agent: "reader", message: "Find the kettle." }), say("The reader found the kettle in `kettle.md`.")]],
  [/find the kettle/i, [call("look_up", { number: "K-1" }), say("The kettle is in `kettle.md`.")]],
  [/markdown/i, [say(markdown, 5)]],
  [/slowly/i, [say("A long story about a kettle that never boils. ".repeat(80), 60)]],
  [/plan/i, [{ calls: ["A-1", "A-2", "A-3"].map((number) => ({ name: "look_up", args: { number } })) }, say("All three were looked up.")]],
];

/** Returns the next message of this conversation. */
function next(messages) {
  const at = messages.findLastIndex((message) => message.role === "user");
  const said = textOf(messages[at]);
  const answered = new Set(messages.slice(at).filter((message) => message.role === "assistant")).size;
  const script = scripts.find(([word]) => word.test(said))?.[1] ?? [say(`You said: ${said}`)];
  return script[Math.min(answered, script.length - 1)];
}

const textOf = (message) =>
  typeof message?.content === "string" ? message.content : (message?.content ?? []).map((part) => part.text ?? "").join("");

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function answer(request, response) {
  let body = "";
  for await (const chunk of request) body += chunk;
  const { messages, stream, model } = JSON.parse(body);
  if (process.env.MODEL_LOG) console.error(request.url, body.slice(0, 3000));
  const turn = next(messages);
  const usage = { prompt_tokens: 900 + body.length / 4 | 0, completion_tokens: 40, total_tokens: 940 };
  const made = `${messages.length}-${Date.now() % 100000}`;
  const calls = (turn.calls ?? []).map((call, index) => ({
    index, id: `call-${made}-${index}`, type: "function", function: { name: call.name, arguments: JSON.stringify(call.args) },
  }));
  const finish_reason = calls.length ? "tool_calls" : "stop";
  const base = { id: `answer-${made}`, model, created: 1 };
  if (!stream) {
    const message = { role: "assistant", content: turn.text ?? null, tool_calls: calls.length ? calls : undefined };
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify({ ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage }));
  }
  response.setHeader("content-type", "text/event-stream");
  const send = (delta, finish = null, more = {}) =>
    response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`);
  send({ role: "assistant", content: "" });
  for (const word of turn.text?.match(/\S+\s*|\s+/g) ?? []) {
    if (response.destroyed) return;
    send({ content: word });
    if (turn.pause) await sleep(turn.pause);
  }
  if (calls.length) send({ tool_calls: calls });
  send({}, finish_reason);
  response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [], usage })}\n\n`);
  response.end("data: [DONE]\n\n");
}

export function serve(port = 0) {
  const server = createServer((request, response) => answer(request, response).catch((error) => response.destroy(error)));
  return new Promise((done) => server.listen(port, "127.0.0.1", () => done({ server, url: `http://127.0.0.1:${server.address().port}/v1` })));
}

if (process.argv[1]?.endsWith("model.mjs")) console.log((await serve(Number(process.argv[2] ?? 0))).url);
