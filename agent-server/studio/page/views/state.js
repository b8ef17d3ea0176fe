// Values of the runs' state and of the shared storage, over time.
import { clock, line, plural } from "../lib/format.js";
import { html, useMemo, useState } from "../lib/html.js";
import { pretty } from "../lib/messages.js";
import { link } from "../lib/routes.js";
import { Code, Diff, Empty, LongList } from "./parts.js";

export function State({ session, name, version }) {
  const { changes } = session.fold;
  const [key, setKey] = useState(null);
  const [chosen, choose] = useState(null);
  const keys = useMemo(() => {
    const all = new Map();
    for (const change of changes) {
      const id = `${change.scope} ${change.scope === "state" ? `${change.agent} ` : ""}${change.key}`;
      const known = all.get(id);
      all.set(id, { id, newest: change, count: (known?.count ?? 0) + 1 });
    }
    return [...all.values()];
  }, [version]);
  const list = useMemo(() => (key ? changes.filter((change) => change.key === key) : changes), [version, key]);
  if (!changes.length) return html`<${Empty} title=${session.loading ? "Loading the journal" : "No values"} framed=${false}>
    <p>Values that tools and middlewares write to a run's state or to the shared storage appear here.</p></${Empty}>`;
  const at = chosen === null ? list.length - 1 : Math.min(chosen, list.length - 1);
  const change = list[at];
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -list.length, End: list.length }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(Math.max(0, Math.min(list.length - 1, at + step)));
  };
  const row = (place) => {
    const it = list[place];
    return html`<div id="change-${place}" role="option" aria-selected=${place === at} class="node ${place === at ? "chosen" : ""}" onClick=${() => choose(place)}>
      <span class="label mono">${it.key}</span><span class="detail clip">
      ${it.value === null ? "removed" : line(JSON.stringify(it.value), 120)}</span><span class="figures">${clock(it.time)}</span></div>`;
  };
  return html`<div class="split with-sheet stacked">
    <section class="tree" aria-label="Changes">
      <div class="bar tools">
        <select aria-label="Value" value=${key ?? ""} onChange=${(event) => { setKey(event.target.value || null); choose(null); }}>
        <option value="">All: ${plural(keys.length, "value")}, ${plural(changes.length, "change")}</option>
          ${keys.map((it) => html`<option key=${it.id} value=${it.newest.key}>${it.newest.key} (${it.newest.scope}, ${it.count})</option>`)}
          </select></div>
      <${LongList} count=${list.length} height=${30} row=${row} at=${at} role="listbox" label="Changes over time" onKeyDown=${press} activeId="change-${at}" />
    </section>
    <section class="sheet" aria-label="The change"><div class="detail-body stack">
      <h2><code>${change.key}</code> <span class="quiet">
        ${change.scope === "state" ? `state of ${change.agent}` : "shared storage"}, ${clock(change.time)}</span></h2>
      <h3>What changed</h3>
        <${Diff} before=${change.before === undefined ? "" : pretty(change.before)} now=${change.value === null ? "" : pretty(change.value)} />
      <h3>New value</h3>
        ${change.value === null ? html`<p class="quiet">Removed.</p>` : html`<${Code} text=${change.value} label="Value" />`}
      <a href=${link("session", name, "trace", { at: change.seq })}>In the trace</a>
    </div></section>
  </div>`;
}
