// Serves the page from disk, before a mock of the read-only Runs API over recordings (for a session
// that is too large to create by running an agent) or before a real server.
import { readFile } from "node:fs/promises";
import { createServer, request as ask } from "node:http";
import { extname } from "node:path";
import { entries, folded, large } from "./recordings/read.mjs";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const POLICY = "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Serves the page; requests that `api(request, response, url)` does not answer are files of it. */
async function serve(api, port) {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://studio");
    response.setHeader("content-security-policy", POLICY);
    if (api(request, response, url)) return;
    const file = url.pathname.replace(/^\/studio\//, "") || "index.html";
    const text = await readFile(new URL(`../page/${file}`, import.meta.url)).catch(() => null);
    if (text) response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain" }).end(text);
    else response.writeHead(404).end();
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}/studio/`, close };
}

/** Serves the page from disk before a real server: changes of the page need no build. */
export const before = (real) =>
  serve((request, response, url) => {
    if (!url.pathname.startsWith("/api/") && !url.pathname.endsWith("config.json")) return false;
    // The server accepts requests of its own origin only.
    const { host, origin, referer, ...headers } = request.headers;
    const forward = ask(new URL(request.url, real), { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    forward.on("error", () => response.destroy());
    response.on("close", () => forward.destroy());
    request.pipe(forward);
    return true;
  }, 0);

export async function mock({ events = 50_000, readOnly = true, port = 0 } = {}) {
  const sessions = new Map([["shop", entries("shop")], ["garden", entries("garden")], ["large", large(events)]]);
  const info = (name) => {
    const all = sessions.get(name);
    return { session: name, title: null, created: all[0].time, updated: all.at(-1).time, entries: all.length, runs: all.filter((it) => it.body.run_started).length, agents: [all[0].body.run_started.ids.agent] };
  };
  const asked = folded(entries("shop").slice(0, 55));
  const waiting = [...asked.questions.values()].map(({ run, question }) => ({ run, agent: "support", session: "shop", question }));
  const usage = { calls: 3, input: 4000, cached: 900, cache_write: 0, output: 160, cost: 5200, priced: 3 };
  const runs = [
    { run: "a", agent: "support", session: "shop", status: "running", live: true, started: Date.now() - 42_000, ended: null, steps: 3, usage, error: null },
    { run: "b", agent: "reader", session: "garden", status: "finished", reason: "text", live: false, started: Date.now() - 600_000, ended: Date.now() - 590_000, steps: 3, usage, error: null },
    { run: "c", agent: "support", session: "large", status: "failed", live: false, started: Date.now() - 900_000, ended: Date.now() - 890_000, steps: 12, usage, error: "the model's server closed the connection" },
  ];
  const agents = [{ name: "support", description: "Helps the customers of a teapot shop.", model: { name: "gpt-5-mini", context_window: 400_000 }, tools: [{ name: "look_up" }, { name: "refund" }] }];

  const api = (url) => {
    const query = url.searchParams;
    const [, , room, name, part] = url.pathname.split("/").map(decodeURIComponent);
    if (room === "agents") return { agents };
    if (room === "runs") return { runs };
    if (room === "questions") return { questions: waiting };
    if (room === "sessions" && !name) return { sessions: [...sessions.keys()].filter((it) => it.includes(query.get("q") ?? "")).map(info), after: null };
    const all = sessions.get(name);
    if (!all || part !== "entries") return null;
    const after = Number(query.get("after"));
    const page = all.slice(after, after + Number(query.get("limit")));
    return { entries: page, after: after + page.length < all.length ? after + page.length : null };
  };

  return serve((request, response, url) => {
    const json = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (url.pathname === "/studio/config.json") return json(200, { read_only: readOnly });
    if (!url.pathname.startsWith("/api/")) return false;
    const found = api(url);
    return found ? json(200, found) : json(404, { error: { code: "not_found", message: "there is no such thing" } });
  }, port);
}

if (process.argv[1]?.endsWith("mock.mjs")) console.log((await mock({ port: Number(process.argv[2] ?? 0), readOnly: process.argv[3] !== "rw" })).url);
