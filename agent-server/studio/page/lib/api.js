// Client for the Runs API of the server that this page was loaded from.
import { parse } from "./exact.js";
import { framesOf } from "./sse.js";

const KEY = "agent-studio-key";
const name = encodeURIComponent;

/** Error response of the server, or the reason why it could not be reached. */
export class ApiError extends Error {
  constructor(status, code, message, more = {}) {
    super(message);
    Object.assign(this, { status, code, ...more });
  }

  get wantsKey() {
    return this.status === 401;
  }
}

/** Stored for this tab only, until the tab is closed. */
export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

async function send(method, path, { body, file, headers, signal } = {}) {
  const all = { ...headers };
  if (key.get()) all.authorization = `Bearer ${key.get()}`;
  if (body !== undefined) all["content-type"] = "application/json";
  if (file) all["content-type"] = file.type || "application/octet-stream";
  let response;
  try {
    response = await fetch(path, { method, headers: all, signal, body: file ?? (body === undefined ? undefined : JSON.stringify(body)), cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server does not respond. Is it still running? Retrying.");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  const told = await response.json().then((body) => body.error, () => null);
  const message = told?.message ?? `The server answered ${response.status}.`;
  return new ApiError(response.status, told?.code ?? "unknown", message, { refusal: told?.refusal, questions: told?.questions });
}

const ask = async (method, path, options) => {
  const response = await send(method, path, options);
  return response.status === 204 ? null : parse(await response.text());
};

const get = (path, options) => ask("GET", path, options);
const post = (path, body, headers) => ask("POST", path, { body: body ?? {}, headers });

/** Builds `?a=1&b=2` from the parameters that are set. */
function query(values) {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return set.length ? `?${new URLSearchParams(set)}` : "";
}

const session = (it) => `/api/sessions/${name(it)}`;
const run = (it) => `/api/runs/${name(it)}`;
const team = (of, it) => `/api/teams/${name(of)}/sessions/${name(it)}`;

export const api = {
  /** Capabilities of this studio; served beside the page. */
  config: () => get("config.json"),
  agents: () => get("/api/agents").then((all) => all.agents),
  sessions: (wanted = {}, signal) => get(`/api/sessions${query(wanted)}`, { signal }),
  session: (it, agent) => get(`${session(it)}${query({ agent })}`),
  entries: (it, after, limit, signal) => get(`${session(it)}/entries${query({ after, limit })}`, { signal }),
  runs: (wanted = {}) => get(`/api/runs${query(wanted)}`).then((all) => all.runs),
  questions: (wanted = {}) => get(`/api/questions${query(wanted)}`).then((all) => all.questions),

  /** Content of an uploaded file as an image source: a URL cannot carry the key. */
  picture: (path, signal) => send("GET", path, { signal }).then((response) => response.blob()),
  upload: (file) => ask("POST", `/api/files${query({ name: file.name })}`, { file }),
  start: (agent, body) => post(`/api/agents/${name(agent)}/runs`, body, { "idempotency-key": crypto.randomUUID() }),
  act: (it, what, of) => post(`${run(it)}/${what}${query({ session: of })}`),
  steer: (it, input) => post(`${run(it)}/steer`, { input }),
  answer: (it, answers, of) => post(`${run(it)}/answers${query({ session: of })}`, { answers }),

  teams: () => get("/api/teams").then((all) => all.teams),
  teamSessions: (of) => get(`/api/teams/${name(of)}/sessions`).then((all) => all.sessions),
  team: (of, it) => get(team(of, it)),
  startTeam: (of, body) => post(`/api/teams/${name(of)}/runs`, body, { "idempotency-key": crypto.randomUUID() }),
  tellTeam: (of, it, body) => post(`${team(of, it)}/messages`, body, { "idempotency-key": crypto.randomUUID() }),
  answerTeam: (of, it, body) => post(`${team(of, it)}/answers`, body),
  /** Stops or resumes the run of a session. */
  actTeam: (of, it, what) => post(`${team(of, it)}/${what}`),

  fork: (it, body) => post(`${session(it)}/fork`, body),
  replay: (it, body) => post(`${session(it)}/replay`, body),
  undo: (it, body) => post(`${session(it)}/undo`, body),
  title: (it, title) => ask("PUT", `${session(it)}/title`, { body: { title } }),
  remove: (it) => ask("DELETE", session(it)),

  /** A session as text for saving: a link cannot carry the key. */
  export: (it, format) => send("GET", `${session(it)}/export${query({ format })}`).then((response) => response.blob()),

  /** Event frames of a team's session after a change, until its run ends. */
  async *teamEvents(of, it, { after, signal }) {
    yield* framesOf(await send("GET", `${team(of, it)}/events${query({ after })}`, { signal, headers: { accept: "text/event-stream" } }));
  },

  /** Event frames of a run after a position, until the run stops. */
  async *events(it, { after, of, signal }) {
    yield* framesOf(await send("GET", `${run(it)}/events${query({ after, session: of })}`, { signal, headers: { accept: "text/event-stream" } }));
  },
};
