// New chat.
import { api } from "../lib/api.js";
import { html, useState } from "../lib/html.js";
import { go } from "../lib/routes.js";
import { agents, config, refresh, useStore } from "../lib/store.js";
import { Composer } from "./composer.js";
import { Empty } from "./parts.js";

const named = () => `chat-${new Date().toISOString().slice(0, 10)}-${crypto.randomUUID().slice(0, 6)}`;

export function NewChat({ query }) {
  const [who, settings] = [agents, config].map(useStore);
  const [agent, setAgent] = useState(query.agent ?? null);
  const [session, setSession] = useState("");
  const chosen = who.find((it) => it.name === agent) ?? who[0];
  if (settings.read_only || !chosen) {
    const why = settings.read_only ? "This studio is read-only." : "No agent is served here. Start the studio with an agent file: agent studio runs.db agent.yaml";
    return html`<div class="column"><${Empty} title="Chats cannot be started here"><p>${why}</p></${Empty}></div>`;
  }
  const send = async (input) => {
    const begun = await api.start(chosen.name, { input, session: session.trim() || named() });
    refresh();
    go("session", begun.session);
  };
  return html`<div class="column new">
    <h1>New chat</h1>
    <div class="pair">
      <label>Agent<select value=${chosen.name} onChange=${(event) => setAgent(event.target.value)}>
        ${who.map((it) => html`<option key=${it.name}>${it.name}</option>`)}</select></label>
      <label><span>Session <span class="hint">optional</span></span>
        <input value=${session} maxlength="200" placeholder="generated" onInput=${(event) => setSession(event.target.value)} /></label>
    </div>
    <p class="quiet">${chosen.description}${chosen.tools?.length ? ` Its tools: ${chosen.tools.map((tool) => tool.name).join(", ")}.` : ""}</p>
    <${Composer} send=${send} placeholder="Message ${chosen.name}" focus />
  </div>`;
}
