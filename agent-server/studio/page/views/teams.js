// Teams: their sessions, and a form to begin one.
import { api } from "../lib/api.js";
import { ago } from "../lib/format.js";
import { html, useEffect, useState } from "../lib/html.js";
import { go, link } from "../lib/routes.js";
import { config, failed, teams, useStore } from "../lib/store.js";
import { Badge, Empty } from "./parts.js";

export function Teams() {
  const all = useStore(teams);
  if (!all.length) {
    return html`<div class="column"><${Empty} title="No teams"><p>Serve a team's file with <code>agent serve team.yaml</code>.</p></${Empty}></div>`;
  }
  return html`<div class="column">${all.map((team) => html`<${TeamCard} key=${team.name} team=${team} />`)}</div>`;
}

function TeamCard({ team }) {
  const settings = useStore(config);
  const [sessions, set] = useState(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    api.teamSessions(team.name).then(set, failed);
  }, [team.name]);
  const begin = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const form = new FormData(event.target);
      const view = await api.startTeam(team.name, { input: form.get("task"), session: form.get("session").trim() || undefined });
      go("team", team.name, view.session);
    } catch (error) {
      failed(error);
      setBusy(false);
    }
  };
  const course = team.pattern ? `pattern ${team.pattern}` : `roles: ${team.roles.join(", ") || "none"}`;
  return html`<section class="stack" aria-labelledby="team-${team.name}">
    <div class="head"><h1 id="team-${team.name}">${team.name}</h1><span class="quiet">${team.description} (${course})</span></div>
    ${!settings.read_only && html`<form class="card" onSubmit=${begin} aria-label="New task for ${team.name}">
      <label>Task<textarea name="task" rows="2" required /></label>
      <label>Session<input name="session" placeholder="a new one" /></label>
      <div class="bar"><button class="main" disabled=${busy}>Start</button></div></form>`}
    ${sessions && (sessions.length ? html`<ul class="rows">${sessions.map((it) => html`<li key=${it.session}>
      <a class="row" href=${link("team", team.name, it.session)}><span class="title clip">${it.session}</span>
      <span class="bar"><span class="figures">${ago(it.updated)}</span>${it.is_active && html`<${Badge} word="running" />`}</span></a></li>`)}
      </ul>` : html`<p class="quiet">No sessions yet.</p>`)}
  </section>`;
}
