// Details of a model call: its request, what was new in it, and the answer.
import { news, told } from "../lib/conversation.js";
import { clock, count, duration, plural, prompt } from "../lib/format.js";
import { html, useMemo, useState } from "../lib/html.js";
import { content, lines, pieces, role } from "../lib/messages.js";
import { Code, Diff, Pieces, Tabs } from "./parts.js";
import { Facts, tokens } from "./detail.js";
import { forkDialog } from "./fork.js";

const SHOWN = 40;

export function CallDetail({ node, session, name, readOnly }) {
  const [tab, setTab] = useState("news");
  if (!node.response) return html`<h2>A call of a side model</h2><${Facts} of=${[["Ended", clock(node.end)], ...tokens(node.usage)]} />`;
  const run = session.fold.runs.get(node.run);
  const panels = { news: News, request: Request, answer: Answered };
  const Panel = panels[tab];
  return html`<div class="bar"><h2><span class="quiet">Model call</span> ${node.label}</h2>
      ${!readOnly && html`<span class="push"><button onClick=${() => forkDialog(session, name, run, node.step - 1, node)}>Fork here</button>
        </span>`}</div>
    <${Facts} of=${[
      ["Began", clock(node.start)],
      ["Took", duration(node.duration)],
      ["Step", node.step],
      ["Ended because", typeof node.finish === "string" ? node.finish.replaceAll("_", " ") : JSON.stringify(node.finish)],
      ...tokens(node.usage),
      ["Answer's id", node.response.id && html`<code>${node.response.id}</code>`],
    ]} />
    <${Tabs} names=${[["news", "What changed"], ["request", `Request (${node.request.length})`], ["answer", "Answer"]]} chosen=${tab} choose=${setTab} label="The call" panel="call" />
    <div id="call" role="tabpanel" aria-labelledby="call-${tab}" class="stack"><${Panel} node=${node} run=${run} /></div>`;
}

/** Changes since the request of the previous call. */
function News({ node, run }) {
  const change = useMemo(() => news(node.previous, node.request), [node]);
  const before = run.steps.flatMap((step) => step.children).findLast((it) => it.kind === "model" && it.response && it.seq < node.seq);
  const grown = before ? prompt(node.usage) - prompt(before.usage) : null;
  const text = (messages) => messages.map(lines).join("\n");
  const since = `${plural(change.same, "message")} as before, ${change.gone.length} gone, ${change.fresh.length} new`;
  const first = `The first call of this run: ${plural(change.fresh.length, "message")}`;
  return html`<p class="quiet">
    ${node.previous ? since : first}${grown === null ? "" : `; ${grown >= 0 ? "+" : "−"}${count(Math.abs(grown))} tokens`}.</p>
    ${change.gone.length > 0
      ? html`<${Diff} before=${text(change.gone)} now=${text(change.fresh)} label="What changed since the call before" />`
      : html`<${Messages} all=${change.fresh} fresh=${Boolean(node.previous)} />`}`;
}

const Request = ({ node, run }) => html`${run.system && html`<details class="thought"><summary>System prompt</summary>
  <pre class="block" tabindex="0">${run.system}</pre></details>`}<${Messages} all=${told(node.request)} />`;

/** Messages, with the newest visible; earlier ones are rendered on demand. */
function Messages({ all, fresh }) {
  const [most, setMost] = useState(SHOWN);
  const shown = all.slice(-most);
  return html`${all.length > most && html`<button class="bare" onClick=${() => setMost(most * 3)}>Show earlier messages of ${all.length}</button>`}
    <ol class="told">${shown.map((message, at) => html`<li key=${all.length - shown.length + at} class=${fresh ? "fresh" : ""}>
      <p class="quiet">${role(message) === "tool" ? `result of ${content(message).name}` : role(message)}</p>
      <${Pieces} pieces=${pieces(message)} plain /></li>`)}</ol>`;
}

function Answered({ node }) {
  const said = { assistant: node.response.message };
  return html`<${Pieces} pieces=${pieces(said)} plain />
    ${node.accepted && html`<h3>After hooks</h3>
      <${Diff} before=${lines(said)} now=${lines({ assistant: node.accepted })} label="Changes by hooks to the answer" />`}
    <details class="thought"><summary>As the provider sent it</summary>
      <${Code} text=${node.response.message.raw?.json ?? node.response} label="The provider's answer" /></details>`;
}
