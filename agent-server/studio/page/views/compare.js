// Comparison of two runs, step by step.
import { api } from "../lib/api.js";
import { duration, plural, used } from "../lib/format.js";
import { html, useEffect, useMemo, useState } from "../lib/html.js";
import { sideBySide } from "../lib/diff.js";
import { transcript } from "../lib/fold.js";
import { go, link } from "../lib/routes.js";
import { failed } from "../lib/store.js";
import { Session } from "../lib/session.js";
import { Badge, Diff, Empty } from "./parts.js";

function useSession(name) {
  const [, draw] = useState(0);
  const session = useMemo(() => (name ? new Session(name, () => draw((n) => n + 1)) : null), [name]);
  useEffect(() => () => session?.close(), [session]);
  return session;
}

export function Compare({ query }) {
  const [left, right] = [useSession(query.a), useSession(query.b)];
  const choose = (side) => (session, run) => go("compare", null, null, { ...query, [side]: session, [`run_${side}`]: run });
  const [one, two] = [runOf(left, query.run_a), runOf(right, query.run_b)];
  const blocks = useMemo(() => (one && two ? sideBySide(transcript(one), transcript(two)) : null), [one, two, left?.fold.version, right?.fold.version]);
  const differing = blocks?.filter((block) => !block.same).length;
  return html`<div class="column wide">
    <h1>Two runs side by side</h1>
    <div class="pair">
      <${Side} word="One" session=${left} name=${query.a} run=${one} choose=${choose("a")} />
      <${Side} word="The other" session=${right} name=${query.b} run=${two} choose=${choose("b")} />
    </div>
    ${!blocks ? html`<${Empty} title="Choose two runs"><p>Of the same session or of two, such as a run and its fork.</p></${Empty}>` : html`
      <p role="status" class="quiet">
        ${differing ? `${differing} of ${blocks.length} steps differ; the first is ${blocks.find((block) => !block.same).title.toLowerCase()}.` : "The two runs are identical."}
        </p>
      <ol class="stack">${blocks.map((block, at) => html`<li key=${at} class="card"><div class="bar"><h2>${block.title}</h2>
        <span class="push">${block.same ? html`<span class="badge">the same</span>` : html`<span class="badge wait">
        ${block.left === null ? "only in the other" : block.right === null ? "only in the first" : "differs"}</span>`}</span></div>
        ${block.same ? html`<details class="thought"><summary>Messages</summary><pre class="block" tabindex="0">${block.left}</pre>
          </details>` : html`<${Diff} before=${block.left ?? ""} now=${block.right ?? ""} label="${block.title}: how they differ" beside />`}
          </li>`)}</ol>`}
  </div>`;
}

const runOf = (session, id) => (session ? session.fold.runs.get(id) ?? (id ? null : session.fold.newest()) : null);

function Side({ word, session, name, run, choose }) {
  const [names, setNames] = useState(name ? [name] : []);
  useEffect(() => void api.sessions({ limit: 200 }).then(({ sessions }) => setNames((was) => [...new Set([...was, ...sessions.map((it) => it.session)])]), failed), []);
  const all = session ? [...session.fold.runs.values()].filter((it) => !it.ids.parent_run_id) : [];
  return html`<div class="card"><label>${word}: session<select value=${name ?? ""} onChange=${(event) => choose(event.target.value)}>
    <option value="" disabled>choose</option>${names.map((it) => html`<option key=${it}>${it}</option>`)}</select></label>
    ${all.length > 0 && html`<label>Run<select value=${run?.id ?? ""} onChange=${(event) => choose(name, event.target.value)}>
      ${all.map((it, at) => html`<option key=${it.id} value=${it.id}>${at + 1}: ${it.ids.agent}, ${plural(it.steps.length, "step")}</option>`)}
      </select></label>`}
    ${run && html`<p class="bar figures">
      <${Badge} word=${run.node.status?.word ?? "running"} /> ${duration(run.node.duration)} · ${used(run.node.below) || "no tokens"} · <a href=${link("session", name, "trace", { at: run.node.seq })}>trace</a>
      </p>`}
    ${session?.error && html`<p class="problem">${session.error.message}</p>`}</div>`;
}
