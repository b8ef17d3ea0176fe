// Page frame: header, current view, and global keyboard shortcuts.
import { key } from "../lib/api.js";
import { html, useEffect, useLayoutEffect, useState } from "../lib/html.js";
import { go, link, parse } from "../lib/routes.js";
import { begin, config, dismiss, locked, questions, runs, teams, toasts, told, trouble, useStore } from "../lib/store.js";
import { Compare } from "./compare.js";
import { Dialogs, help } from "./dialogs.js";
import { Live } from "./live.js";
import { NewChat } from "./new.js";
import { Problem } from "./parts.js";
import { Questions } from "./questions.js";
import { SessionView, TABS } from "./session.js";
import { Sessions } from "./sessions.js";
import { TeamView } from "./team.js";
import { Teams } from "./teams.js";

const THEMES = ["auto", "light", "dark"];

function nextTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length];
  if (next === "auto") {
    delete root.dataset.theme;
    localStorage.removeItem("agent-studio-theme");
  } else {
    root.dataset.theme = next;
    localStorage.setItem("agent-studio-theme", next);
  }
  dispatchEvent(new Event("theme"));
  return next;
}

function useRoute() {
  const [route, set] = useState(parse(location.hash));
  useEffect(() => {
    const read = () => set(parse(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return route;
}

/** Global shortcuts, except while text is typed. */
function useKeys(route, setTheme) {
  useLayoutEffect(() => {
    let before = "";
    const press = (event) => {
      const typing = event.target.closest?.("input, textarea, select, dialog");
      // Leaves a field, so that the shortcuts below work.
      if (event.key === "Escape" && typing && typing.tagName !== "DIALOG" && !typing.closest("dialog")) document.querySelector("#content").focus();
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const pressed = before === "g" ? `g ${event.key}` : event.key;
      before = event.key;
      const tab = route.page === "session" && TABS[Number(pressed) - 1];
      const act = tab ? () => go("session", route.name, tab[0]) : keys[pressed];
      if (!act) return;
      event.preventDefault();
      act();
    };
    const search = () => {
      if (route.page !== "sessions") go("sessions");
      setTimeout(() => document.querySelector("#search")?.focus(), 50);
    };
    const keys = { "?": help, "/": search, n: () => go("new"), t: () => setTheme(nextTheme()), "g l": () => go("live"), "g s": () => go("sessions"), "g q": () => go("questions") };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [route.page, route.name]);
}

export function App() {
  const route = useRoute();
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "auto");
  const [waiting, live, isLocked, problem, settings, groups] = [questions, runs, locked, trouble, config, teams].map(useStore);
  useEffect(() => void begin(), []);
  useKeys(route, setTheme);
  useEffect(() => {
    document.title = route.name ? `${route.name} · Agent studio` : "Agent studio";
  }, [route]);
  const running = (live ?? []).filter((run) => run.status === "running" || run.status === "queued").length;
  const place = (page, text, badge) => html`<a href=${link(page)} aria-current=${route.page === page ? "page" : null}>${text}${badge}</a>`;
  return html`
    <header class="top">
      <a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.querySelector("#content").focus(); }}>Skip to content</a>
      <a class="brand" href=${link("live")}><img src="icon.svg" alt="" />Agent studio</a>
      <nav aria-label="Main">
        ${place("live", "Live", running > 0 && html`<span class="badge live">${running}</span>`)}
        ${place("sessions", "Sessions")}
        ${groups.length > 0 && place("teams", "Teams")}
        ${place("questions", "Questions", waiting.length > 0 && html`<span class="badge wait">${waiting.length}</span>`)}
        ${!settings.read_only && place("new", "New chat")}
      </nav>
      <div class="rest">
        ${settings.read_only && html`<span class="badge" title="Nothing can be changed or started here">read-only</span>`}
        <button class="bare" onClick=${() => setTheme(nextTheme())} title="Colours: ${theme}">${{ auto: "◐", light: "☀", dark: "☾" }[theme]}
          <span class="unseen">Colours: ${theme}</span></button>
        <button class="bare" onClick=${help} title="Keys (?)">?<span class="unseen"> Keys</span></button>
      </div>
    </header>
    <main id="content" tabindex="-1">
      ${problem && !isLocked && html`<div class="column"><${Problem} text=${problem} retry=${begin} /></div>`}
      ${isLocked ? html`<${Unlock} />` : html`<${Page} route=${route} />`}
    </main>
    <${Dialogs} />
    <${Toasts} />
    <div class="unseen" role="status" aria-live="polite">${useStore(told)}</div>`;
}

function Page({ route }) {
  if (route.page === "session" && route.name) return html`<${SessionView} key=${route.name} name=${route.name} tab=${route.tab ?? "chat"} query=${route.query} />`;
  if (route.page === "sessions") return html`<${Sessions} query=${route.query} />`;
  if (route.page === "questions") return html`<${Questions} />`;
  if (route.page === "teams") return html`<${Teams} />`;
  if (route.page === "team" && route.name && route.tab) return html`<${TeamView} key=${`${route.name}/${route.tab}`} team=${route.name} session=${route.tab} />`;
  if (route.page === "compare") return html`<${Compare} key=${JSON.stringify(route.query)} query=${route.query} />`;
  if (route.page === "new") return html`<${NewChat} query=${route.query} />`;
  return html`<${Live} />`;
}

/** Asks for the key, which is stored for this tab only. */
function Unlock() {
  const [wrong, setWrong] = useState(Boolean(key.get()));
  const submit = async (event) => {
    event.preventDefault();
    key.set(new FormData(event.target).get("key").trim());
    setWrong(false);
    await begin();
    if (locked.get()) setWrong(true);
  };
  return html`<div class="column"><form class="card unlock" onSubmit=${submit}>
    <h1>Sign in</h1>
    <p class="quiet">This server requires a key: one of its key file, or the one that it printed at startup. The key is stored until this tab is closed.</p>
    <label>Key<input name="key" type="password" autocomplete="off" required autofocus aria-invalid=${wrong} aria-describedby="wrong-key" /></label>
    <p id="wrong-key" role="alert" class="quiet">${wrong ? "The server rejected this key. Is it complete?" : ""}</p>
    <div class="bar"><button class="main">Sign in</button></div>
  </form></div>`;
}

function Toasts() {
  const all = useStore(toasts);
  return html`<div class="toasts" role="status" aria-live="polite">${all.map((it) => html`<div class="toast" key=${it.id}><span>${it.text}
    </span>${it.action && html`<button onClick=${() => { dismiss(it.id); it.action.act(); }}>${it.action.word}</button>`}</div>`)}</div>`;
}
