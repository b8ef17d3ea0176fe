// Overview: active runs, questions for the user, and starting points.
import { api } from "../lib/api.js";
import { ago, count, duration, plural, used } from "../lib/format.js";
import { html, useEffect, useState } from "../lib/html.js";
import { link } from "../lib/routes.js";
import { agents, config, failed, questions, refresh, runs, useStore } from "../lib/store.js";
import { Badge, Empty } from "./parts.js";
import { QuestionCard } from "./questions.js";

const underWay = (run) => run.status === "running" || run.status === "queued";

export function Live() {
  const [all, waiting, who, settings] = [runs, questions, agents, config].map(useStore);
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  if (!all) return html`<div class="column"><p class="quiet">Loading …</p></div>`;
  const live = all.filter(underWay);
  const over = all.filter((run) => !underWay(run)).slice(0, 12);
  return html`<div class="column">
    <section aria-labelledby="now"><div class="head"><h1 id="now">Active runs</h1><span class="quiet">
      ${live.length ? plural(live.length, "run") : ""}</span></div>
      ${live.length ? html`<ul class="rows">${live.map((run) => html`<${RunRow} key=${run.run} run=${run} may=${!settings.read_only} />`)}
        </ul>` : html`<${Empty} title="No active runs">
        ${settings.read_only ? html`<p>Look into a <a href=${link("sessions")}>session</a>.</p>` : html`<p>
          <a href=${link("new")}>Start a chat</a>, or look into a <a href=${link("sessions")}>session</a>.</p>`}</${Empty}>`}
    </section>
    ${waiting.length > 0 && html`<section aria-labelledby="waiting"><div class="head"><h1 id="waiting">Waiting for you</h1></div>
      <div class="stack">${waiting.slice(0, 5).map((it) => html`<${QuestionCard} key=${it.run + it.question.id} waiting=${it} named />`)}
      </div></section>`}
    ${over.length > 0 && html`<section aria-labelledby="over"><div class="head"><h1 id="over">Recent runs</h1></div><ul class="rows">
      ${over.map((run) => html`<${RunRow} key=${run.run} run=${run} />`)}</ul></section>`}
    ${who.length > 0 && html`<section aria-labelledby="agents"><div class="head"><h1 id="agents">Agents</h1></div><ul class="rows">
      ${who.map((agent) => html`<${AgentRow} key=${agent.name} agent=${agent} may=${!settings.read_only} />`)}</ul></section>`}
  </div>`;
}

function RunRow({ run, may }) {
  const took = (run.ended ?? Date.now()) - run.started;
  const cancel = () => api.act(run.run, "cancel", run.session).then(refresh, failed);
  const stop = may && underWay(run);
  return html`<li class=${stop ? "acts" : ""}><a class="row" href=${link("session", run.session, underWay(run) ? "chat" : "trace")}>
    <span class="clip"><span class="title">${run.session}</span> <span class="quiet">${run.agent}</span></span>
    <span class="bar">
      <span class="figures">${plural(run.steps ?? 0, "step")} · ${used(run.usage) || "no tokens"} · ${underWay(run) ? duration(took) : ago(run.ended ?? run.started)}</span>
      <${Badge} word=${run.status} title=${run.reason} />
    </span>
    ${run.error && html`<span class="below quiet clip">${run.error}</span>`}
  </a>
  ${stop && html`<button class="bare" onClick=${cancel} aria-label="Stop the run of ${run.session}">Stop</button>`}</li>`;
}

function AgentRow({ agent, may }) {
  const model = agent.model?.name ?? "";
  return html`<li class="row">
    <span class="clip"><span class="title">${agent.name}</span> <span class="quiet">${agent.description ?? ""}</span></span>
    ${may && html`<a class="button" href=${link("new", null, null, { agent: agent.name })}>Chat</a>`}
    <span class="below figures clip">
      ${model}${agent.model?.context_window ? ` · window ${count(agent.model.context_window)}` : ""} · ${plural(agent.tools?.length ?? 0, "tool")}${agent.tools?.length ? `: ${agent.tools.map((tool) => tool.name).join(", ")}` : ""}
      </span>
  </li>`;
}
