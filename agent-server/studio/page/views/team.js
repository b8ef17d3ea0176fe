// One session of a team, live: members, task board, messages, questions and waits.
import { api } from "../lib/api.js";
import { clock, plural, used } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { link } from "../lib/routes.js";
import { config, failed, toast, useStore } from "../lib/store.js";
import { parse } from "../lib/exact.js";
import { TeamFold } from "../lib/team.js";
import { Badge, Problem } from "./parts.js";
import { QuestionCard } from "./questions.js";

/** Follows the events of a session, and reads its state when it changes. */
function useTeam(team, session) {
  const [view, setView] = useState(null);
  const [problem, setProblem] = useState(null);
  const [, draw] = useState(0);
  const [round, again] = useState(0);
  const fold = useRef(null);
  if (!fold.current) fold.current = new TeamFold();
  useEffect(() => {
    const stop = new AbortController();
    let timer = null;
    const look = () => api.team(team, session).then(setView, (error) => (error.name === "AbortError" ? null : setProblem(error.message)));
    const later = () => {
      timer ??= setTimeout(() => {
        timer = null;
        look();
      }, 150);
    };
    const follow = async () => {
      await look();
      for await (const frame of api.teamEvents(team, session, { after: fold.current.seq, signal: stop.signal })) {
        const data = parse(frame.data);
        if (frame.event === "change" && fold.current.change(data)) later();
        if (frame.event === "run") fold.current.run(data.member, data.event);
        if (frame.event === "end") setView(data);
        draw((n) => n + 1);
      }
    };
    follow().catch((error) => error.name !== "AbortError" && setProblem(error.message));
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [team, session, round]);
  return { view, problem, fold: fold.current, again: () => (setProblem(null), again((n) => n + 1)) };
}

export function TeamView({ team, session }) {
  const settings = useStore(config);
  const { view, problem, fold, again } = useTeam(team, session);
  const [chosen, choose] = useState(null);
  if (problem) return html`<div class="column"><${Problem} text=${problem} retry=${again} /></div>`;
  if (!view) return html`<div class="column"><p class="quiet">Loading …</p></div>`;
  const open = ["running", "waiting", "suspended"].includes(view.status);
  const act = (what) => api.actTeam(team, session, what).then(again, failed);
  return html`<div class="column team">
    <div class="head"><h1>${session}</h1><span class="quiet">${team}${view.pattern ? ` · pattern ${view.pattern}` : ""}</span>
      <span class="bar push"><span class="figures">${plural(view.rounds, "turn")} · ${used(view.usage) || "no tokens"}</span>
      <${Badge} word=${view.status} title=${view.error} />
      ${!settings.read_only && open && html`<button class="bare" onClick=${() => act("stop")}>Stop</button>`}
      ${!settings.read_only && view.status === "suspended" && html`<button onClick=${() => act("resume")}>Resume</button>`}</span></div>
    ${view.error && html`<${Problem} text=${view.error} />`}
    ${view.questions.map((asked) => html`<${QuestionCard} key=${asked.member + asked.question.id} named waiting=${{
      question: asked.question, run: view.run, session: `${session}:${asked.member}`, agent: asked.member,
      reply: (answer) => api.answerTeam(team, session, { member: asked.member, question: asked.question.id, ...answer }).then(again),
    }} />`)}
    <${Members} view=${view} session=${session} chosen=${chosen} choose=${choose} writing=${fold.writing} />
    ${!view.pattern && html`<${Board} view=${view} />`}
    <${Waits} waits=${view.waits} />
    <${Messages} items=${fold.of(chosen)} writing=${fold.writing} chosen=${chosen} />
    ${!settings.read_only && html`<${Write} team=${team} session=${session} view=${view} again=${again} />`}
  </div>`;
}

function Members({ view, session, chosen, choose, writing }) {
  return html`<section aria-labelledby="members"><div class="head"><h2 id="members">Members</h2>
      ${chosen && html`<button class="bare" onClick=${() => choose(null)}>Show all</button>`}</div>
    <ul class="panels">${view.members.map((member) => html`<li key=${member.id} class="card">
      <div class="bar"><button class="link title" aria-pressed=${chosen === member.id} onClick=${() => choose(member.id)}>${member.id}</button>
        <span class="push"><${Badge} word=${member.status} title=${member.error} /></span></div>
      <p class="quiet clip">${writing.get(member.id)?.slice(-120) ?? (member.task ? `works on ${member.task}` : member.unread ? `${plural(member.unread, "message")} unread` : member.role)}</p>
      <p class="figures">${plural(member.turns, "turn")} · ${used(member.usage) || "no tokens"} · ${" "}<a href=${link("session", `${session}:${member.id}`)}>conversation</a></p></li>`)}</ul></section>`;
}

const LOOK = { pending: "", in_progress: "live", completed: "good" };

function Board({ view }) {
  return html`<section aria-labelledby="board"><div class="head"><h2 id="board">Tasks</h2></div>
    ${view.tasks.length ? html`<div class="board" tabindex="0" role="region" aria-label="Task board"><table><thead><tr><th>Task</th><th>Title</th><th>Status</th><th>Owner</th><th>Needs</th></tr></thead>
      <tbody>${view.tasks.map((task) => html`<tr key=${task.id}><td>${task.id}</td><td>${task.title}${task.result && html`<div class="quiet">${task.result}</div>`}</td>
        <td><span class="badge ${task.is_blocked ? "wait" : LOOK[task.status]}">${task.is_blocked && task.status === "pending" ? "blocked" : task.status.replace("_", " ")}</span></td>
        <td>${task.owner ?? "–"}</td><td>${task.dependencies?.join(", ") || "–"}</td></tr>`)}</tbody></table></div>`
      : html`<p class="quiet">The board has no tasks.</p>`}</section>`;
}

function Waits({ waits }) {
  if (!waits.length) return null;
  return html`<section aria-labelledby="waits"><div class="head"><h2 id="waits">Waiting</h2></div><ul class="rows">
    ${waits.map((wait) => html`<li class="row" key=${wait.waiting + wait.on}><span><strong>${wait.waiting}</strong> waits for <strong>${wait.on}</strong>
      <span class="quiet"> ${wait.why}</span></span></li>`)}</ul></section>`;
}

function Messages({ items, writing, chosen }) {
  const shown = items.filter((item) => item.text || item.calls?.length).slice(-300);
  const live = [...writing].filter(([member]) => !chosen || member === chosen);
  return html`<section aria-labelledby="messages"><div class="head"><h2 id="messages">Messages${chosen ? ` of ${chosen}` : ""}</h2></div>
    <ol class="stack" aria-live="polite">${shown.map((item) => html`<li key=${item.key} class="said ${item.kind}">
      <span class="figures">${clock(item.time)}</span> <strong>${item.by}</strong>${item.to && html` <span class="quiet">to ${item.to.join(", ")}</span>`}
      ${item.status && html` <span class="badge ${LOOK[item.status]}">${item.status.replace("_", " ")}</span>`}
      <span class="plain"> ${item.text}</span>${item.calls?.length > 0 && html` <span class="quiet">calls ${item.calls.join(", ")}</span>`}</li>`)}
      ${live.map(([member, text]) => html`<li key=${`live-${member}`} class="said"><strong>${member}</strong><span class="plain"> ${text}</span></li>`)}</ol></section>`;
}

/** Writes to the leader, to a member or to all. */
function Write({ team, session, view, again }) {
  const [busy, setBusy] = useState(false);
  const isOpen = ["running", "waiting", "suspended"].includes(view.status);
  const members = view.pattern || !isOpen ? [] : view.members.filter((member) => member.status !== "removed");
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    const form = event.target;
    const data = new FormData(form);
    try {
      if (isOpen) await api.tellTeam(team, session, { to: data.get("to") || undefined, input: data.get("text") });
      else await api.startTeam(team, { input: data.get("text"), session });
      form.reset();
      toast("The message was sent.");
      again();
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
    }
  };
  if (view.pattern && isOpen) return null;
  return html`<form class="card" onSubmit=${submit} aria-label="Write to the team">
    <label>Message<textarea name="text" rows="2" required /></label>
    <div class="bar">${members.length > 0 && html`<label class="inline">To <select name="to">
      ${members.map((member) => html`<option key=${member.id} value=${member.id} selected=${member.id === "leader"}>${member.id}</option>`)}
      <option value="*">all members</option></select></label>`}
      <button class="main" disabled=${busy}>${isOpen ? "Send" : "Start a run"}</button></div></form>`;
}
