// Session view: chat, trace of the runs, flame chart and state.
import { api } from "../lib/api.js";
import { money, plural, prompt, count } from "../lib/format.js";
import { html, useEffect, useMemo, useState } from "../lib/html.js";
import { Session } from "../lib/session.js";
import { go, link } from "../lib/routes.js";
import { config, failed, questions, refresh, runs, toast, useStore } from "../lib/store.js";
import { Chat } from "./chat.js";
import { confirm, show } from "./dialogs.js";
import { Flame } from "./flame.js";
import { Badge, Empty, Problem, Tabs } from "./parts.js";
import { State } from "./state.js";
import { Trace } from "./trace.js";

export const TABS = [["chat", "Chat"], ["trace", "Trace"], ["flame", "Flame chart"], ["state", "State"]];
/**
 * Time in milliseconds without an entry after which an open run without a driving process counts as
 * stopped.
 */
const QUIET = 10_000;
const VIEWS = { chat: Chat, trace: Trace, flame: Flame, state: State };

/** The session, followed while it is shown. */
function useSession(name) {
  const [, draw] = useState(0);
  const session = useMemo(() => new Session(name, () => draw((n) => n + 1)), [name]);
  useEffect(() => () => session.close(), [session]);
  return session;
}

export function SessionView({ name, tab, query }) {
  const session = useSession(name);
  const [settings, waiting, live] = [config, questions, runs].map(useStore);
  const { fold, loading, error } = session;
  const newest = fold.newest();
  const ours = waiting.filter((it) => it.session === name);
  const running = live?.find((run) => run.session === name && (run.status === "running" || run.status === "queued"));
  // A run that no process drives and that has no recent entry has died, or belongs to another
  // program.
  const isDead = newest?.node.open && live && !running && Date.now() - fold.last > QUIET;
  const state = newest?.node.open ? (isDead ? "stopped" : "running") : newest?.node.status?.word;
  // Answers, and runs started elsewhere, must show at once.
  useEffect(() => session.poke(), [running?.run, ours.length]);
  const isOpen = Boolean(newest?.node.open);
  useEffect(() => void refresh(), [isOpen]);
  if (error && !fold.seq) {
    const gone = error.status === 404;
    return html`<div class="column">${gone ? html`<${Empty} title="Session not found">
      <p>“${name}” does not exist in this store, or belongs to another tenant. <a href=${link("sessions")}>All sessions</a></p>
      </${Empty}>` : html`<${Problem} text=${error.message} retry=${() => session.poke()} />`}</div>`;
  }
  const View = VIEWS[tab] ?? Chat;
  return html`<div class="session">
    <header class="head">
      <div class="bar">
        <h1 class="clip">${fold.title ?? name}</h1>
        ${newest && !loading && html`<${Badge} word=${ours.length ? "waiting" : state} />`}
        <span class="figures push">${loading ? `${count(fold.seq)} entries so far` : figures(fold)}</span>
        <${Menu} session=${session} name=${name} readOnly=${settings.read_only} />
      </div>
      <${Tabs} names=${TABS} chosen=${VIEWS[tab] ? tab : "chat"} choose=${(next) => go("session", name, next)} label="Views of the session" panel="view" />
    </header>
    <div id="view" class="view" role="tabpanel" aria-labelledby="view-${tab}">
      ${error && html`<${Problem} text=${error.message} retry=${() => session.poke()} />`}
      <${View} session=${session} name=${name} query=${query} waiting=${ours} running=${running} state=${state} readOnly=${settings.read_only} version=${fold.version} />
    </div>
  </div>`;
}

function figures({ usage, runs: all }) {
  const cost = usage.priced ? ` · ${money(usage.cost)}` : "";
  return usage.calls ? `${plural(all.size, "run")} · ${plural(usage.calls, "call")} · ${count(prompt(usage))} → ${count(usage.output)} tokens${cost}` : plural(all.size, "run");
}

/** Actions on the whole session. */
function Menu({ session, name, readOnly }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (!open) return undefined;
    const away = (event) => {
      if (event.type !== "keydown" || event.key === "Escape") setOpen(false);
    };
    addEventListener("click", away);
    addEventListener("keydown", away);
    return () => {
      removeEventListener("click", away);
      removeEventListener("keydown", away);
    };
  }, [open]);
  const newest = session.fold.newest();
  const save = async (format, ending) => {
    try {
      const url = URL.createObjectURL(await api.export(name, format));
      Object.assign(document.createElement("a"), { href: url, download: `${name}.${ending}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      failed(error);
    }
  };
  const entitle = (done) => (event) => {
    event.preventDefault();
    api.title(name, new FormData(event.target).get("title")).then(() => session.poke(), failed);
    done();
  };
  const rename = () => show("Title", (done) => html`<form onSubmit=${entitle(done)}>
    <label>Title<input name="title" value=${session.fold.title ?? name} required autofocus /></label><div class="bar">
      <button type="button" onClick=${done}>Cancel</button><button class="main">Set</button></div></form>`);
  const undo = () => confirm("Undo the last run?", "The conversation returns to its previous state. The effects of the run's tools are not undone. The run stays in the journal and in the trace, marked as undone.", "Undo it", () =>
    api.undo(name, { run: newest.id }).then(() => (session.poke(), toast("The run was undone.")), failed));
  const remove = () => confirm("Delete the session?", html`Everything of <strong>${name}
    </strong> is deleted from the store permanently. Export it first if you may need it again.`, "Delete it", () =>
    api.remove(name).then(() => (refresh(), toast(`${name} is deleted.`), go("sessions")), failed));
  const entry = (text, act, risk) => html`<button role="menuitem" class=${risk ? "risk" : ""} onClick=${act}>${text}</button>`;
  return html`<div class="menu">
    <button class="bare" aria-haspopup="menu" aria-expanded=${open} onClick=${(event) => { event.stopPropagation(); setOpen(!open); }}>⋯<span class="unseen"> More</span>
      </button>
    ${open && html`<div role="menu" aria-label="The session">
      ${entry("Export as JSON lines", () => save("jsonl", "jsonl"))}${entry("Export as Markdown", () => save("markdown", "md"))}${entry("Export as a page", () => save("html", "html"))}
      ${entry("Compare with another run", () => go("compare", null, null, { a: name, run_a: newest?.id }))}
      ${!readOnly && entry("Give it a title", rename)}${!readOnly && newest && !newest.undone && entry("Undo the last run", undo)}${!readOnly && entry("Delete the session", remove, true)}
    </div>`}
  </div>`;
}
