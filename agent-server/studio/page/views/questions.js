// Open questions of runs, with forms to answer them.
import { api } from "../lib/api.js";
import { parse } from "../lib/exact.js";
import { pretty } from "../lib/messages.js";
import { html, useState } from "../lib/html.js";
import { link } from "../lib/routes.js";
import { config, failed, questions, refresh, toast, useStore } from "../lib/store.js";
import { Code, Diff, Empty } from "./parts.js";

export function Questions() {
  const waiting = useStore(questions);
  return html`<div class="column"><h1>Questions</h1>
    ${waiting.length ? html`<div class="stack">
      ${waiting.map((it) => html`<${QuestionCard} key=${it.run + it.question.id} waiting=${it} named />`)}
      </div>` : html`<${Empty} title="No open questions">
      <p>Approvals and other questions of runs appear here.</p></${Empty}>`}
  </div>`;
}

/** One question with its answers. */
export function QuestionCard({ waiting, named, answered }) {
  const settings = useStore(config);
  const [busy, setBusy] = useState(false);
  const { question, run, session, agent } = waiting;
  const send = async (answer) => {
    setBusy(true);
    try {
      if (waiting.reply) await waiting.reply(answer);
      else await api.answer(run, [{ question: question.id, digest: question.digest || undefined, ...answer }], session);
      questions.set((all) => all.filter((it) => it.run !== run || it.question.id !== question.id));
      toast("The answer was accepted: the run resumes.");
      answered?.();
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
      refresh();
    }
  };
  const Form = settings.read_only ? ReadOnly : FORMS[question.kind] ?? AnyAnswer;
  return html`<section class="card wait" aria-label="Question: ${question.kind}">
    ${named && html`<p class="quiet clip">${agent} in <a href=${link("session", session)}>${session}</a></p>`}
    <${Form} question=${question} send=${send} busy=${busy} />
    ${question.expires && html`<p class="hint">Until ${new Date(question.expires).toLocaleString("en-GB")}; then the run continues without an answer.</p>`}
  </section>`;
}

const ReadOnly = ({ question }) => html`<h3>${question.payload?.tool ?? question.kind}</h3>
  <${Code} text=${question.payload?.arguments ?? question.payload} label="Question" />
  <p class="hint">This studio is read-only: answer where the agent runs.</p>`;

/** Tool call that waits for approval. */
function Approval({ question, send, busy }) {
  const { tool, description, arguments: given, why, decisions = ["approve", "reject"] } = question.payload;
  const [mode, setMode] = useState(null);
  const [text, setText] = useState(pretty(given));
  const [wrong, setWrong] = useState(null);
  const choose = (next) => () => {
    setMode(next);
    setText(next === "edit" ? pretty(given) : "");
    setWrong(null);
  };
  const submit = (event) => {
    event.preventDefault();
    if (mode === "reject") return send({ allow: false, ...(text.trim() && { reason: text.trim() }) });
    if (mode === "respond") return send({ value: { decision: "respond", content: text.trim() } });
    const parsed = object(text);
    if (!parsed.value) return setWrong(parsed.wrong);
    return send({ arguments: parsed.value });
  };
  const may = (decision) => decisions.includes(decision);
  return html`<h3>May <code>${tool}</code> run?</h3>
    ${description && html`<p class="quiet">${description}</p>`}
    ${mode !== "edit" && html`<${Code} text=${given} label="Arguments" />`}
    ${why && html`<p class="hint">Asked because ${why}.</p>`}
    ${!mode && html`<div class="bar">
      ${may("approve") && html`<button class="main" disabled=${busy} onClick=${() => send({ allow: true })}>Approve</button>`}
      ${may("edit") && html`<button disabled=${busy} onClick=${choose("edit")}>Edit arguments</button>`}
      ${may("reject") && html`<button class="risk" disabled=${busy} onClick=${choose("reject")}>Reject</button>`}
      ${may("respond") && html`<button class="bare" disabled=${busy} onClick=${choose("respond")}>Give a result instead</button>`}
    </div>`}
    ${mode && html`<form class="stack" onSubmit=${submit}>
      ${mode === "edit" && html`<label>Arguments, as a JSON object<textarea class="mono" rows="6" autofocus value=${text} aria-invalid=${Boolean(wrong)} onInput=${(event) => setText(event.target.value)} />
        </label>
        ${object(text).value && text !== pretty(given) && html`<${Diff} before=${pretty(given)} now=${pretty(text)} label="Your changes" />`}`}
      ${mode === "reject" && html`<label><span>Why not? <span class="hint">Sent to the model; optional.</span></span>
        <textarea rows="2" autofocus value=${text} onInput=${(event) => setText(event.target.value)} /></label>`}
      ${mode === "respond" && html`<label>Result for the model instead of the tool's<textarea rows="3" required autofocus value=${text} onInput=${(event) => setText(event.target.value)} />
        </label>`}
      ${wrong && html`<p class="problem" role="alert">${wrong}</p>`}
      <div class="bar"><button class=${mode === "reject" ? "risk" : "main"} disabled=${busy}>
        ${{ edit: "Run with these", reject: "Reject", respond: "Answer" }[mode]}</button>
        <button type="button" class="bare" onClick=${choose(null)}>Back</button></div>
    </form>`}`;
}

/** Several calls that wait for one answer. */
function Approvals({ question, send, busy }) {
  const all = question.payload.calls ?? [];
  const [refused, setRefused] = useState([]);
  const submit = (event) => {
    event.preventDefault();
    send({ value: Object.fromEntries(all.map((call) => [call.call_id, { decision: refused.includes(call.call_id) ? "reject" : "approve" }])) });
  };
  const flip = (id) => setRefused(refused.includes(id) ? refused.filter((it) => it !== id) : [...refused, id]);
  return html`<form class="stack" onSubmit=${submit}><h3>${all.length} calls wait</h3>
    ${all.map((call) => html`<div class="stack" key=${call.call_id}><label class="inline">
      <input type="checkbox" checked=${!refused.includes(call.call_id)} onChange=${() => flip(call.call_id)} />run <code>${call.tool}</code>
      </label><${Code} text=${call.arguments} label="Arguments of ${call.tool}" /></div>`)}
    <div class="bar"><button class="main" disabled=${busy}>Run ${all.length - refused.length} of ${all.length}</button></div>
  </form>`;
}

/** Question of the agent to the user. */
function AskUser({ question, send, busy }) {
  const all = question.payload.questions ?? [];
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    send({ value: all.map((one, at) => {
      const own = form.get(`own-${at}`)?.trim();
      const chosen = form.getAll(`chosen-${at}`);
      if (own) return own;
      return one.multiple ? chosen : chosen[0] ?? "";
    }) });
  };
  return html`<form class="stack" onSubmit=${submit}>${all.map((one, at) => html`<fieldset key=${at}><legend>${one.question}</legend>
      ${one.options?.map((option) => html`<label class="inline" key=${option}>
        <input type=${one.multiple ? "checkbox" : "radio"} name="chosen-${at}" value=${option} />${option}</label>`)}
      <input name="own-${at}" aria-label=${one.options?.length ? "Or in your words" : one.question} placeholder=${one.options?.length ? "or in your words" : ""} required=${!one.options?.length} />
    </fieldset>`)}
    <div class="bar"><button class="main" disabled=${busy}>Answer</button></div></form>`;
}

/** Question of an unknown kind. */
function AnyAnswer({ question, send, busy }) {
  const [text, setText] = useState("");
  const isText = question.schema?.type === "string" || !question.schema;
  const [wrong, setWrong] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    if (isText) return send({ value: text });
    try {
      return send({ value: parse(text) });
    } catch (error) {
      return setWrong(`Invalid JSON: ${error.message}.`);
    }
  };
  return html`<form class="stack" onSubmit=${submit}><h3>${question.kind}</h3><${Code} text=${question.payload} label="Question" />
    ${question.schema && html`<details class="thought"><summary>Schema of the answer</summary><${Code} text=${question.schema} /></details>`}
    <label>Answer${isText ? "" : ", as JSON"}
      <textarea class=${isText ? "" : "mono"} rows="3" required value=${text} onInput=${(event) => setText(event.target.value)} /></label>
    ${wrong && html`<p class="problem" role="alert">${wrong}</p>`}
    <div class="bar"><button class="main" disabled=${busy}>Answer</button></div></form>`;
}

const FORMS = { approval: Approval, approvals: Approvals, ask_user: AskUser };

/** Parses a JSON object from a text, or returns the error. */
function object(text) {
  try {
    const value = parse(text);
    if (value && typeof value === "object" && !Array.isArray(value)) return { value };
    return { wrong: "Arguments are a JSON object, such as {\"number\": \"A-17\"}." };
  } catch (error) {
    return { wrong: `Invalid JSON: ${error.message}.` };
  }
}
