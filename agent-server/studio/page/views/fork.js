// Fork: continue from a step of a run in a new session, with one message changed.
import { api } from "../lib/api.js";
import { told } from "../lib/conversation.js";
import { html, useState } from "../lib/html.js";
import { line } from "../lib/format.js";
import { pieces, role, textOf } from "../lib/messages.js";
import { go } from "../lib/routes.js";
import { refresh, runs, toast } from "../lib/store.js";
import { show } from "./dialogs.js";

/** Asks how to fork `run` after `step`; `call` is the following model call, if there is one. */
export function forkDialog(session, name, run, step, call) {
  const next = call ?? run.steps[0]?.children.find((node) => node.kind === "model");
  const messages = next ? told(next.request) : [];
  show("Fork", (done) => html`<${ForkForm} session=${session} name=${name} run=${run} step=${step} messages=${messages} done=${done} />`);
}

function ForkForm({ name, run, step, messages, done }) {
  const users = messages.map((message, at) => ({ message, at })).filter(({ message }) => role(message) === "user");
  const [at, setAt] = useState(users.at(-1)?.at ?? null);
  const original = at === null ? "" : textOf(pieces(messages[at]));
  const [text, setText] = useState(original);
  const [into, setInto] = useState(free(name));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const pick = (event) => {
    const chosen = Number(event.target.value);
    setAt(chosen);
    setText(textOf(pieces(messages[chosen])));
  };
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const edit = at !== null && text !== original ? { message: at, text } : undefined;
      await api.fork(name, { agent: run.ids.agent_id, run: run.id, step, into: into.trim(), edit });
      done();
      refresh();
      go("session", into.trim());
      toast("The fork was started.", { word: "Side by side", act: () => go("compare", null, null, { a: name, run_a: run.id, b: into.trim() }) });
    } catch (error) {
      setBusy(false);
      setProblem(error.message);
    }
  };
  return html`<form onSubmit=${submit}>
    <p class="quiet">
      ${step ? `The history up to the end of step ${step} is kept` : "The run starts again from its input"}; from there on, the agent continues in a new session. This session stays unchanged.</p>
    <label>New session<input required maxlength="200" value=${into} onInput=${(event) => setInto(event.target.value)} /></label>
    ${users.length > 1 && html`<label>Message to change<select value=${at} onChange=${pick}>
      ${users.map((it) => html`<option key=${it.at} value=${it.at}>${line(textOf(pieces(it.message)), 60)}</option>`)}</select></label>`}
    ${users.length > 0 && html`<label>User message<textarea rows="5" autofocus value=${text} onInput=${(event) => setText(event.target.value)} />
      </label>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <div class="bar"><button type="button" onClick=${done}>Cancel</button><button class="main" disabled=${busy}>
      ${text === original ? "Fork" : "Fork with this"}</button></div>
  </form>`;
}

/** Returns a name that no listed session has. */
function free(name) {
  const taken = new Set((runs.get() ?? []).map((run) => run.session));
  const base = name.replace(/-fork-\d+$/, "");
  for (let number = 1; ; number += 1) {
    const wanted = `${base}-fork-${number}`;
    if (!taken.has(wanted)) return wanted;
  }
}
