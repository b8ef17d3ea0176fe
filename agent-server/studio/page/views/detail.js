// Details of one row of the trace.
import { api } from "../lib/api.js";
import { told } from "../lib/conversation.js";
import { clock, count, duration, money, plural, prompt } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { lines, outputText, pieces, pretty } from "../lib/messages.js";
import { link } from "../lib/routes.js";
import { failed, questions, useStore } from "../lib/store.js";
import { path } from "../lib/tree.js";
import { CallDetail } from "./call.js";
import { forkDialog } from "./fork.js";
import { Badge, Code, Diff, Pieces } from "./parts.js";
import { QuestionCard } from "./questions.js";

export function Detail(props) {
  const { node, pick } = props;
  const Kind = KINDS[node.kind] ?? Other;
  const above = path(node).slice(0, -1);
  return html`<div class="detail-body stack">
    ${above.length > 0 && html`<nav aria-label="Above" class="crumbs">
      ${above.map((it) => html`<button class="link" key=${it.id} onClick=${() => pick(it)}>${it.label}</button> › `)}</nav>`}
    <${Kind} ...${props} />
  </div>`;
}

const Head = ({ kind, title, children }) => html`<div class="bar"><h2><span class="quiet">${kind}</span> ${title}</h2>
  <span class="push bar">${children}</span></div>`;

export const Facts = ({ of }) => html`<dl class="facts">${of.filter(([, value]) => value || value === 0).map(([name, value]) => html`<dt>
  ${name}</dt><dd>${value}</dd>`)}</dl>`;

const when = (node) => [["Began", clock(node.start)], ["Took", node.open ? "under way" : duration(node.duration)]];

export const tokens = (usage) =>
  usage?.calls
    ? [
        ["Tokens in", `${count(prompt(usage))}${usage.cached ? `, ${count(usage.cached)} from the cache` : ""}`],
        ["Tokens out", `${count(usage.output)}${usage.reasoning ? `, ${count(usage.reasoning)} of them thinking` : ""}`],
        ["Cost", cost(usage)],
      ]
    : [];

function cost({ calls, priced, cost: micros }) {
  if (!priced) return "not known";
  return priced < calls ? `${money(micros)}, without ${plural(calls - priced, "call")} of unknown price` : money(micros);
}

function RunDetail({ node, session, name, readOnly }) {
  const run = session.fold.runs.get(node.run);
  const isTop = !run.ids.parent_run_id;
  const { used, reserved } = run.budget;
  const set = [...reserved.values()].reduce((sum, amounts) => sum + (amounts.cost ?? 0), 0);
  return html`<${Head} kind="Run of" title=${node.label}>
    <${Badge} word=${node.undone ? "undone" : node.status?.word ?? "running"} title=${node.status?.reason} /></${Head}>
    ${node.error && html`<p class="problem">${node.error}</p>`}
    <${Facts} of=${[...when(node), ["Ended", node.status?.reason ?? node.status?.word], ["Steps", run.steps.length], ...tokens(node.below), ["Run", html`<code>
      ${run.id}</code>`], ["For", run.ids.user]]} />
    ${Object.keys(used).length > 0 && html`<h3>Budget</h3>
      <${Facts} of=${[
        ["Tokens", used.tokens && count(used.tokens)],
        ["Money", used.cost && money(used.cost)],
        ["Model calls", used.model_calls],
        ["Tool calls", used.tool_calls],
        ["Set aside", set ? money(set) : ""],
      ]} />`}
    <div class="bar">
      ${!readOnly && isTop && html`<${Replay} run=${run} name=${name} />`}
      ${!readOnly && isTop && run.steps.length > 0 && html`<button onClick=${() => forkDialog(session, name, run, 0)}>Fork from the start</button>`}
      ${isTop && html`<a class="button" href=${link("compare", null, null, { a: name, run_a: run.id })}>Compare</a>`}
    </div>
    <details class="thought"><summary>Agent fingerprint</summary><pre class="block" tabindex="0">${run.fingerprint}</pre></details>
    ${run.system && html`<details class="thought"><summary>System prompt</summary><pre class="block" tabindex="0">${run.system}</pre></details>`}`;
}

/** Replays the run with the recorded results of its models and tools. */
function Replay({ run, name }) {
  const [outcome, setOutcome] = useState(null);
  const replay = async () => {
    setOutcome({ busy: true });
    try {
      const ended = await api.replay(name, { run: run.id, agent: run.ids.agent_id });
      setOutcome({ good: `Replay matches: ${ended.status}.` });
    } catch (error) {
      if (error.status === 409) setOutcome({ bad: error.message });
      else {
        setOutcome(null);
        failed(error);
      }
    }
  };
  return html`<button disabled=${outcome?.busy} onClick=${replay} title="Nothing is called and nothing is written">Replay</button>
    ${outcome?.good && html`<span class="badge good" role="status">${outcome.good}
      </span>`}${outcome?.bad && html`<p class="problem wide" role="status">${outcome.bad}</p>`}`;
}

function StepDetail({ node, pick }) {
  return html`<${Head} kind="" title=${node.label} /><${Facts} of=${[...when(node), ...tokens(node.usage)]} />
    <ul class="rows">${node.children.map((it) => html`<li key=${it.id}><button class="row bare wide" onClick=${() => pick(it)}>
      <span class="clip">${it.label} <span class="quiet">${it.detail ?? ""}</span></span><span class="figures">${duration(it.duration)}
      </span></button></li>`)}</ul>`;
}

function ToolDetail({ node, session, pick }) {
  const below = node.below && session.fold.runs.get(node.below);
  const gave = node.output && outputText(node.output);
  const told = node.answer && outputText(node.answer);
  return html`<${Head} kind="Tool" title=${node.label}>
    ${node.failed && html`<${Badge} word="failed" />`}${node.open && html`<${Badge} word="running" />`}</${Head}>
    <${Facts} of=${[...when(node), ["Effect", node.effect?.replaceAll("_", " ")], ["Call", html`<code>${node.callId}
      </code>`], ["Note", node.skipped ? "It did not run: a result was given in its place." : node.cut ? "The run stopped while it ran." : node.background ? "It runs in the background." : ""]]} />
    ${below && html`<div class="bar"><button onClick=${() => pick(below.node)}>The run of ${below.ids.agent}</button></div>`}
    <h3>Arguments</h3><${Code} text=${node.call?.arguments ?? "not known"} label="Arguments" />
    ${gave !== undefined && html`<h3>Result</h3><${Result} output=${node.output} text=${gave} />`}
    ${told !== undefined && told !== gave && html`<h3>Result sent to the model</h3>
      ${gave === undefined ? html`<${Result} output=${node.answer} text=${told} />` : html`<${Diff} before=${gave} now=${told} label="Changes by hooks to the result" />`}`}`;
}

const Result = ({ output, text }) => html`${text && html`<pre class="block" tabindex="0" aria-label="Result">
  ${text.length > 200_000 ? `${text.slice(0, 200_000)}\n… ${count(text.length - 200_000)} more characters` : text}</pre>`}
  <${Pieces} pieces=${(output.parts ?? []).map((part) => pieces({ tool: { parts: [part] } })[0]).filter((piece) => piece.kind !== "text")} />
  ${output.value !== undefined && html`<details class="thought"><summary>As a value</summary><${Code} text=${output.value} /></details>`}`;

function WaitDetail({ node, session, name }) {
  const waiting = useStore(questions).find((it) => it.session === name && node.open && it.question.digest === node.question?.digest);
  if (!node.question) return html`<${Head} kind="" title="Waited" /><${Facts} of=${when(node)} />`;
  return html`<${Head} kind="Question" title=${node.label}>${node.open && html`<${Badge} word="waiting" />`}</${Head}>
    <${Facts} of=${[...when(node), ["Answered by", node.by]]} />
    ${waiting ? html`<${QuestionCard} waiting=${waiting} answered=${() => session.poke()} />` : html`<h3>Asked</h3>
      <${Code} text=${node.question.payload} />`}
    ${node.reply !== undefined && html`<h3>Answer</h3>
      ${node.reply?.arguments ? html`<${Diff} before=${pretty(node.question.payload?.arguments)} now=${pretty(node.reply.arguments)} label="The edit of the arguments" />` : html`<${Code} text=${node.reply} />`}`}`;
}

const StateDetail = ({ node, name }) => html`<${Head} kind="State" title="" /><${Facts} of=${[["When", clock(node.start)]]} />
  ${node.changed.map((change) => html`<h3><code>${change.key}</code> <span class="quiet">${change.scope}</span></h3>
    <${Diff} before=${change.before === undefined ? "" : pretty(change.before)} now=${change.value === null ? "" : pretty(change.value)} />`)}
  <a href=${link("session", name, "state")}>All values over time</a>`;

const MessageDetail = ({ node }) => html`<${Head} kind="Message" title=${node.label} /><${Facts} of=${[["When", clock(node.start)]]} />
  <${Pieces} pieces=${pieces(node.message)} plain />`;

const text = (request) => told(request).map(lines).join("\n");

const CompactionDetail = ({ node }) => html`<${Head} kind="" title=${node.label} />
  <${Facts} of=${[["When", clock(node.start)], ["What", node.detail]]} />${node.was && html`<h3>The conversation before and after</h3>
  <${Diff} before=${text(node.was)} now=${text(node.now)} />`}`;

const Other = ({ node }) => html`<${Head} kind=${node.kind === "note" ? "" : node.kind} title=${node.label} />
  <${Facts} of=${[["When", clock(node.start)], ["What", node.detail], ["Kept", node.passing ? "no: a transient event, which is not in the journal" : ""]]} />
  ${node.value !== undefined && html`<${Code} text=${node.value} />`}${node.message && html`<${Pieces} pieces=${pieces(node.message)} plain />`}`;

const KINDS = { run: RunDetail, step: StepDetail, model: CallDetail, tool: ToolDetail, wait: WaitDetail, state: StateDetail, message: MessageDetail, compaction: CompactionDetail };
