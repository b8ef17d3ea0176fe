// Folds a session's journal, entry by entry, into the view model: tree, chat, requests, questions
// and state changes. Folding an entry takes constant time, independent of the length of the
// journal.
import { Conversation, told } from "./conversation.js";
import { add, line, status } from "./format.js";
import { calls, lines, outputText, textOf, pieces } from "./messages.js";
import { Tree } from "./tree.js";

/** Handlers by entry kind; defined in the class, whose private fields they access. */
let folds;

export class Fold {
  tree = new Tree();
  /** Runs by id. */
  runs = new Map();
  /** Items of the chat, in order. */
  chat = [];
  /** Values of states and of the storage, with their changes. */
  changes = [];
  /** Open questions, by run and question id. */
  questions = new Map();
  usage = {};
  title = null;
  /** Newest entry. */
  seq = 0;
  first = 0;
  last = 0;
  /** Number of folded entries, by which views detect that they are out of date. */
  version = 0;
  #conversations = new Map();
  /** Call that started a sub-agent's run, while that run has not begun. */
  #links = new Map();
  #values = new Map();

  apply(entry) {
    if (entry.seq <= this.seq) return;
    this.seq = entry.seq;
    this.version += 1;
    this.first ||= entry.time;
    this.last = entry.time;
    const [kind, body] = Object.entries(entry.body)[0];
    if (kind === "run_started" || kind === "run_resumed") this.#begin(entry, body, kind === "run_resumed");
    if (kind === "titled") this.title = body.title;
    const run = this.runs.get(entry.run);
    if (!run) return;
    folds[kind]?.call(this, run, body, entry);
    run.before = entry.time;
  }

  /**
   * Applies a transient event, which has no entry: it is shown while this page is open. It has no
   * timestamp, so it gets the time `now`.
   */
  passing(id, event, now = Date.now()) {
    const run = this.runs.get(id);
    const [kind, body] = Object.entries(event)[0];
    const told = passing[kind]?.(body);
    if (!run || !told) return;
    this.version += 1;
    const time = Math.max(this.last, run.before, now);
    const { kind: look = "note", lasts = 0, ...fields } = told;
    this.#note(run, { time, seq: null }, look, { passing: true, end: time + lasts * 1000, ...fields });
  }

  /** Newest top-level run of an agent. */
  newest() {
    return [...this.runs.values()].findLast((run) => !run.ids.parent_run_id) ?? null;
  }

  #begin(entry, { ids, fingerprint }, resumed) {
    const known = this.runs.get(entry.run);
    if (known) {
      if (!resumed) return;
      // A wait for an answer is shown by its question.
      if (known.node.status?.word !== "waiting") this.#note(known, entry, "wait", { label: "waited", start: known.node.end ?? entry.time, end: entry.time });
      Object.assign(known.node, { end: null, open: true, status: null, error: null });
      return;
    }
    const link = this.#links.get(entry.run);
    const above = this.runs.get(ids.parent_run_id);
    const parent = link ?? above?.node ?? null;
    const node = this.tree.add(parent, "run", { label: ids.agent, start: entry.time, open: true, seq: entry.seq, run: entry.run, usage: {}, below: {}, status: null });
    const conversation = this.#conversation(ids.agent_id);
    this.runs.set(entry.run, {
      id: entry.run, ids, node, fingerprint, conversation, began: conversation.request(),
      step: null, before: entry.time, answer: null, tools: new Map(), outputs: new Map(), steps: [], request: null, budget: { reserved: new Map(), used: {} },
      undone: false,
    });
  }

  #conversation(agent) {
    if (!this.#conversations.has(agent)) this.#conversations.set(agent, new Conversation());
    return this.#conversations.get(agent);
  }

  #note(run, entry, kind, fields) {
    return this.tree.add(run.step ?? run.node, kind, { start: entry.time, end: entry.time, seq: entry.seq, run: run.id, ...fields });
  }

  #say(run, item) {
    if (!run.ids.parent_run_id) this.chat.push({ run: run.id, agent: run.ids.agent, ...item });
  }

  /** Node of a step; a step begins with its model call. */
  #step(run, number, time, seq) {
    if (run.step?.number === number) return run.step;
    if (run.step) run.step.end ??= time;
    run.step = this.tree.add(run.node, "step", { label: `Step ${number}`, number, start: time, end: null, seq, run: run.id, usage: {} });
    run.steps.push(run.step);
    return run.step;
  }

  static {
    folds = {
      message_appended(run, { message }, entry) {
        run.conversation.push(message);
        const label = Object.keys(message)[0];
        const node = this.tree.add(run.node, "message", { label, detail: line(textOf(pieces(message))), start: entry.time, end: entry.time, seq: entry.seq, run: run.id, message });
        this.#say(run, { kind: "message", message, time: entry.time, seq: entry.seq, node: node.id });
      },
      steered(run, { message }, entry) {
        this.#note(run, entry, "note", { label: "steered", detail: line(textOf(pieces(message))), message });
      },
      model_finished(run, { step, response }, entry) {
        const parent = this.#step(run, step, run.before, entry.seq);
        const { message, usage, model, finish } = response;
        const asked = calls({ assistant: message });
        const detail = asked.length ? asked.map((call) => call.name).join(", ") : line(textOf(pieces({ assistant: message })));
        const request = run.conversation.request();
        const node = this.tree.add(parent, "model", {
          label: model ?? "model", detail, start: run.before, end: entry.time, seq: entry.seq, run: run.id, step, usage, response, request, previous: run.request, finish,
        });
        run.request = request;
        run.answer = { message, node };
        for (const sum of [this.usage, parent.usage, run.node.usage]) add(sum, usage);
        for (let at = run.node; at; at = at.parent) if (at.kind === "run") add(at.below, usage);
      },
      side_model_finished(run, { usage }, entry) {
        this.#note(run, entry, "model", { label: "side model", start: run.before, usage });
        for (const sum of [this.usage, run.node.usage]) add(sum, usage);
        for (let at = run.node; at; at = at.parent) if (at.kind === "run") add(at.below, usage);
      },
      model_accepted(run, { step, message, exit }, entry) {
        const said = message ?? run.answer?.message;
        if (!said) return;
        if (message && run.answer) run.answer.node.accepted = message;
        run.conversation.answered(said);
        this.#say(run, { kind: "answer", message: { assistant: said }, time: entry.time, seq: entry.seq, step, node: run.answer?.node.id, exit });
        run.answer = null;
      },
      exit_declined(run, _, entry) {
        this.#note(run, entry, "note", { label: "goes on", detail: "a hook wants another answer" });
      },
      stop_requested(run, { reason }, entry) {
        this.#note(run, entry, "note", { label: "stop", detail: reason });
      },
      tool_started(run, { call_id, name, effect }, entry) {
        const again = run.tools.get(call_id);
        const call = again ? again.call : this.#callOf(run, call_id);
        const node = this.#note(run, entry, "tool", { label: name, detail: line(call?.arguments), call, callId: call_id, effect, end: null, open: true, attempt: (again?.attempt ?? 0) + 1 });
        run.tools.set(call_id, node);
      },
      tool_suspended(run, { call_id }, entry) {
        const node = run.tools.get(call_id);
        if (node) Object.assign(node, { end: entry.time, open: false, suspended: true });
      },
      tool_finished(run, { call_id, output }, entry) {
        run.outputs.set(call_id, output);
        const node = run.tools.get(call_id);
        if (node) Object.assign(node, { end: entry.time, open: false, output, failed: Boolean(output.is_error) });
      },
      tool_answered(run, { call_id, name, output }, entry) {
        const node = run.tools.get(call_id) ?? this.#note(run, entry, "tool", { label: name, call: this.#callOf(run, call_id), callId: call_id, skipped: true });
        const answer = output ?? run.outputs.get(call_id);
        run.outputs.delete(call_id);
        run.tools.set(call_id, node);
        Object.assign(node, { open: false, end: node.end ?? entry.time, answer: output, failed: Boolean(answer?.is_error) });
        node.detail ||= line(node.call?.arguments);
        run.conversation.result(call_id, name, answer);
      },
      turn_ended(run, { step, changed }, entry) {
        run.conversation.turnEnded(changed);
        if (run.step?.number === step) run.step.end = entry.time;
      },
      sub_agent_linked(run, { call_id, run: below, background }) {
        const tool = run.tools.get(call_id);
        if (!tool) return;
        Object.assign(tool, { below, background });
        const known = this.runs.get(below);
        if (known) this.tree.move(known.node, tool);
        else this.#links.set(below, tool);
      },
      sub_agent_reported(run, { message }, entry) {
        if (message) run.conversation.push(message);
        this.#note(run, entry, "note", { label: "sub-agent reported", detail: message ? line(textOf(pieces(message))) : "" });
      },
      history_replaced(run, { reason, before, history }, entry) {
        const was = run.conversation.request();
        run.conversation.replace(history);
        if (reason === "resumed") return;
        const label = typeof reason === "string" ? reason : Object.keys(reason)[0];
        this.#note(run, entry, "compaction", { label: `history: ${label}`, detail: `${before} messages, now ${history.length}`, was, now: run.conversation.request() });
        this.#say(run, { kind: "replaced", reason: label, before, after: history.length, time: entry.time, seq: entry.seq });
      },
      undone(_, { before_run }, entry) {
        const from = this.runs.get(before_run);
        if (!from) return;
        from.conversation.restore(from.began);
        for (const run of this.runs.values()) {
          if (run.node.seq >= from.node.seq && run.conversation === from.conversation && run.node.seq < entry.seq) run.undone = run.node.undone = true;
        }
      },
      decided(run, { name, value, beginning }, entry) {
        if (beginning) run.system = systemOf(value) ?? run.system;
        this.#note(run, entry, "note", { label: "decided", detail: name, value });
      },
      asked(run, { question }, entry) {
        const node = this.#note(run, entry, "wait", { label: question.kind, detail: line(question.payload?.tool ?? JSON.stringify(question.payload)), question, end: null, open: true });
        this.questions.set(`${run.id}/${question.id}`, { run: run.id, question, node });
        this.#say(run, { kind: "question", question, time: entry.time, seq: entry.seq, node: node.id });
      },
      answered(run, { id, answer, by }, entry) {
        const asked = this.questions.get(`${run.id}/${id}`);
        if (!asked) return;
        this.questions.delete(`${run.id}/${id}`);
        Object.assign(asked.node, { end: entry.time, open: false, reply: answer, by });
      },
      state_changed(run, { state = {}, globals = {} }, entry) {
        const changed = [...this.#changed("state", run, state, entry), ...this.#changed("storage", run, globals, entry)];
        this.#note(run, entry, "state", { label: "state", detail: changed.map((change) => change.key).join(", "), changed });
      },
      budget_reserved(run, { call = 0, amounts }) {
        run.budget.reserved.set(call, amounts);
      },
      budget_settled(run, { call = 0, amounts }) {
        run.budget.reserved.delete(call);
        add(run.budget.used, amounts);
      },
      imported(run, { state }, entry) {
        this.#note(run, entry, "note", { label: "imported", detail: "forked or moved from elsewhere", value: state });
      },
      run_ended(run, { status: how, error }, entry) {
        Object.assign(run.node, { end: entry.time, open: false, status: status(how), error });
        if (run.step) run.step.end ??= entry.time;
        for (const tool of run.tools.values()) if (tool.open) Object.assign(tool, { open: false, end: entry.time, cut: true });
        if (status(how).word !== "finished") this.#say(run, { kind: "ended", status: status(how), error, time: entry.time, seq: entry.seq });
      },
    };
  }

  #callOf(run, id) {
    const said = run.step?.children.findLast((node) => node.kind === "model");
    const message = said?.accepted ?? said?.response?.message;
    return message && calls({ assistant: message }).find((call) => call.id === id);
  }

  #changed(scope, run, values, entry) {
    return Object.entries(values).map(([key, value]) => {
      const place = scope === "state" ? `${run.id}/${key}` : key;
      const change = { scope, key, value, before: this.#values.get(place), time: entry.time, seq: entry.seq, run: run.id, agent: run.ids.agent, at: this.changes.length };
      this.#values.set(place, value);
      this.changes.push(change);
      return change;
    });
  }
}

/** Handlers of transient events. */
const passing = {
  retry: ({ attempt, delay, kind, error }) => ({ kind: "retry", lasts: delay, label: `retry ${attempt}`, detail: line(`in ${delay} s, after ${kind}: ${error}`) }),
  failover: ({ from, to, error }) => ({ kind: "retry", label: "failover", detail: line(`${from} → ${to}: ${error}`) }),
  hedge: ({ delay }) => ({ kind: "retry", label: "hedge", detail: `a second call after ${delay} s` }),
  circuit: ({ key, state }) => ({ kind: "retry", label: "circuit", detail: `${key} is ${state}` }),
  compaction_started: ({ mode, trigger }) => ({ kind: "compaction", label: "compaction", detail: line(`${JSON.stringify(mode)}: ${trigger}`) }),
  compaction: (it) => ({ kind: "compaction", label: "compacted", detail: line(it.failure ?? `${it.strategy}: ${it.tokens_before} tokens, now ${it.tokens_after}`) }),
  tool_progress: ({ progress }) => ({ label: "progress", detail: line(typeof progress === "string" ? progress : JSON.stringify(progress)) }),
  warning: ({ message }) => ({ label: "warning", detail: line(message), failed: true }),
  custom: ({ name, value }) => ({ label: name, detail: line(JSON.stringify(value)) }),
};

/** Returns the system prompt, if a decision at the beginning of a run is one. */
const systemOf = (value) => (typeof value === "string" ? value : value?.system);

/** Returns a run as blocks of text for comparison: its input, and then its steps. */
export function transcript(run) {
  const blocks = [{ title: "Asked", text: asked(run).map(lines).join("\n") }];
  for (const step of run.steps) {
    const parts = step.children.map((node) => {
      if (node.kind === "model" && node.response) return lines({ assistant: node.accepted ?? node.response.message });
      if (node.kind === "tool") return `${node.label} gave\n${outputText(node.answer ?? node.output)}\n`;
      if (node.kind === "wait" && node.question) return `${node.label}: ${JSON.stringify(node.reply ?? null)}\n`;
      return "";
    });
    blocks.push({ title: step.label, step: step.number, text: parts.join("") });
  }
  return blocks;
}

/**
 * Returns the input of a run: the messages that it started with, or for a fork the newest user
 * message of its history.
 */
function asked(run) {
  const brought = run.node.children.filter((node) => node.kind === "message").map((node) => node.message);
  if (brought.length) return brought;
  const first = run.steps[0]?.children.find((node) => node.request);
  return first ? told(first.request).filter((message) => message.user).slice(-1) : [];
}
