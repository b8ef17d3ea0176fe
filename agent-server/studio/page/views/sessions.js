// List of all sessions, most recently active first, with search in names, titles and messages.
import { api } from "../lib/api.js";
import { ago, plural, used } from "../lib/format.js";
import { html, useEffect, useState } from "../lib/html.js";
import { link, settle } from "../lib/routes.js";
import { agents, failed, questions, runs, useStore } from "../lib/store.js";
import { Badge, Empty, Problem } from "./parts.js";

const PAGE = 50;

export function Sessions({ query }) {
  const [text, setText] = useState(query.q ?? "");
  const [page, setPage] = useState({ all: null, after: null });
  const [problem, setProblem] = useState(null);
  const [live, waiting, who] = [runs, questions, agents].map(useStore);
  const [again, setAgain] = useState(0);

  useEffect(() => {
    const stop = new AbortController();
    const ask = async () => {
      try {
        const { sessions, after } = await api.sessions({ q: text, limit: PAGE }, stop.signal);
        setPage({ all: sessions, after });
        setProblem(null);
      } catch (error) {
        if (error.name !== "AbortError") setProblem(error);
      }
    };
    settle("sessions", null, null, { q: text });
    const timer = setTimeout(ask, text ? 200 : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, again]);

  const more = async () => {
    const { sessions, after } = await api.sessions({ q: text, limit: PAGE, after: page.after }).catch((error) => (failed(error), { sessions: [], after: null }));
    setPage({ all: [...page.all, ...sessions], after });
  };
  const state = (session) => {
    if (session.questions || waiting.some((it) => it.session === session.session)) return "waiting";
    return live?.find((run) => run.session === session.session && run.live)?.status;
  };
  return html`<div class="column">
    <form role="search" onSubmit=${(event) => event.preventDefault()}>
      <label for="search" class="unseen">Search sessions</label>
      <input id="search" type="search" placeholder="Search names, titles and messages  ( / )" value=${text} onInput=${(event) => setText(event.target.value)} />
    </form>
    ${problem && html`<${Problem} text=${problem.message} retry=${() => setAgain(again + 1)} />`}
    <div aria-live="polite" class="unseen">${page.all ? plural(page.all.length, "session") : ""}</div>
    ${!page.all ? html`<p class="quiet">Loading …</p>` : page.all.length === 0 ? nothing(text, who) : html`<section aria-label="Sessions">
      <ul class="rows">
      ${page.all.map((it) => html`<li key=${it.session}><a class="row" href=${link("session", it.session)}>
        <span class="clip"><span class="title">${it.title ?? it.session}</span> ${it.title && html`<span class="quiet">${it.session}</span>`}</span>
        <span class="bar">${state(it) && html`<${Badge} word=${state(it)} />`}<span class="figures">
          ${plural(it.runs, "run")} · ${it.usage && used(it.usage) ? `${used(it.usage)} · ` : ""}${ago(it.updated)}</span></span>
        <span class="below figures clip">${it.agents.join(", ")} · ${plural(it.entries, "entry", "entries")}</span>
      </a></li>`)}</ul></section>`}
    ${page.after && html`<div class="bar"><button onClick=${more}>Show more</button></div>`}
  </div>`;
}

function nothing(text, who) {
  if (text) return html`<${Empty} title="No results"><p>No session contains “${text}” in its name, title or messages.</p>
    </${Empty}>`;
  return html`<${Empty} title="There are no sessions yet"><p>
    ${who.length ? html`<a href=${link("new")}>Start a chat</a>: it is stored here.` : "Sessions of agents in this store appear here."}</p>
    </${Empty}>`;
}
