// Trace view: the runs as a tree, with the details of the selected row.
import { duration, used } from "../lib/format.js";
import { html, useEffect, useMemo, useRef, useState } from "../lib/html.js";
import { settle } from "../lib/routes.js";
import { path, rows } from "../lib/tree.js";
import { Detail } from "./detail.js";
import { Badge, Empty, LongList } from "./parts.js";

const HEIGHT = 30;
const SHOWS = {
  all: () => true,
  calls: (node) => ["run", "model", "tool", "wait"].includes(node.kind),
  trouble: (node) => node.failed || node.error || node.kind === "retry" || node.status?.word === "failed" || (node.kind === "wait" && node.open),
};
const SIGNS = { run: "●", step: "", model: "◆", tool: "▪", wait: "◷", message: "›", compaction: "≡", state: "=", retry: "↻", note: "·" };

export function Trace({ session, name, query, readOnly, version }) {
  const { fold } = session;
  const [closed, setClosed] = useState(() => new Set());
  const [filter, setFilter] = useState("all");
  const [words, setWords] = useState("");
  const wanted = Number(query.at) || null;
  const [chosen, choose] = useState(null);
  const [sheet, setSheet] = useState(Boolean(wanted));

  const shows = useMemo(() => {
    const low = words.toLowerCase();
    const kind = SHOWS[filter];
    return low ? (node) => kind(node) && `${node.label} ${node.detail ?? ""}`.toLowerCase().includes(low) : kind;
  }, [filter, words]);
  const list = useMemo(() => rows(fold.tree.roots, closed, shows), [version, closed, shows]);
  const places = useMemo(() => new Map(list.map((node, at) => [node.id, at])), [list]);
  // A route names an entry; its node arrives with the entry's page of the journal.
  const asked = useRef(null);
  useEffect(() => {
    if (!wanted || asked.current === wanted) return;
    const node = fold.tree.nodes.findLast((it) => it.seq === wanted);
    if (!node) return;
    asked.current = wanted;
    choose(node.id);
    setSheet(true);
  }, [wanted, version]);

  const node = chosen === null ? null : fold.tree.nodes[chosen];
  const at = node ? places.get(node.id) ?? -1 : -1;
  const pick = (next, show) => {
    choose(next.id);
    if (next.seq) asked.current = next.seq;
    if (next.seq) settle("session", name, "trace", { at: next.seq });
    if (show) setSheet(true);
  };
  const toggle = (it, shut = !closed.has(it.id)) => setClosed((was) => {
    const now = new Set(was);
    if (shut) now.add(it.id);
    else now.delete(it.id);
    return now;
  });
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -list.length, End: list.length }[event.key];
    if (step && list.length) pick(list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + step))]);
    else if (event.key === "ArrowRight" && node?.children.length) closed.has(node.id) ? toggle(node, false) : list[at + 1] && pick(list[at + 1]);
    else if (event.key === "ArrowLeft" && node) node.children.length && !closed.has(node.id) ? toggle(node, true) : node.parent && pick(node.parent);
    else if (event.key === "Enter" && node) setSheet(true);
    else return;
    event.preventDefault();
  };
  if (!session.loading && !fold.tree.nodes.length) return html`<${Empty} title="No runs in this session" framed=${false} />`;
  const row = (place) => {
    const it = list[place];
    return html`<${Row} node=${it} first=${fold.first} chosen=${it.id === chosen} closed=${closed.has(it.id)}
      toggle=${toggle} pick=${() => pick(it, true)} flat=${filter !== "all" || words} place=${place} count=${list.length} />`;
  };
  const choice = (key, text) => html`<option value=${key}>${text}</option>`;
  return html`<div class="split ${sheet && node ? "with-sheet" : ""}">
    <section class="tree" aria-label="Trace">
      <div class="bar tools">
        <input type="search" aria-label="Find in the trace" placeholder="Find in the trace" value=${words} onInput=${(event) => setWords(event.target.value)} />
        <select aria-label="Filter" value=${filter} onChange=${(event) => setFilter(event.target.value)}>
          ${choice("all", "Everything")}${choice("calls", "Calls and waits")}${choice("trouble", "Failures")}</select>
      </div>
      ${list.length
        ? html`<${LongList} count=${list.length} height=${HEIGHT} row=${row} at=${at} role="tree" label="What happened"
            onKeyDown=${press} activeId=${node && at >= 0 ? `node-${node.id}` : null} />`
        : html`<${Empty} title=${session.loading ? "Loading the journal" : "No matching rows"} framed=${false} />`}
    </section>
    <section class="sheet" aria-label="Details">
      <button class="bare back" onClick=${() => setSheet(false)}>← Trace</button>
      ${node ? html`<${Detail} key=${node.id} node=${node} session=${session} name=${name} readOnly=${readOnly} pick=${(it) => pick(it, true)} version=${version} />` : html`<${Empty} title="Choose a row" framed=${false}>
        <p>Model requests, tool arguments and results, and changes appear here.</p></${Empty}>`}
    </section>
  </div>`;
}

function Row({ node, first, chosen, closed, toggle, pick, flat, place, count }) {
  const has = node.children.length > 0;
  const depth = flat ? 0 : node.depth;
  const label = flat && node.parent ? `${path(node).slice(-2, -1)[0].label} › ${node.label}` : node.label;
  const flip = (event) => {
    event.stopPropagation();
    toggle(node);
  };
  return html`<div id="node-${node.id}" role="treeitem" aria-level=${depth + 1} aria-setsize=${count} aria-posinset=${place + 1} aria-expanded=${has ? !closed : null} aria-selected=${chosen}
      class="node ${node.kind} ${chosen ? "chosen" : ""} ${node.undone ? "undone" : ""} ${node.failed ? "failed" : ""}" style=${{ paddingLeft: `${8 + Math.min(depth, 8) * 15}px` }} onClick=${pick}>
    <span class="twist" onClick=${has ? flip : null} aria-hidden="true">${has ? (closed ? "▸" : "▾") : ""}</span>
    <span class="sign" aria-hidden="true">${SIGNS[node.kind]}</span>
    <span class="label">${label}</span><span class="detail clip">${node.detail ?? ""}</span>
    <${State} node=${node} />
    <span class="figures">${node.kind === "run" ? used(node.below) : used(node.usage)}</span>
    <span class="figures took">${node.open ? "…" : node.duration ? duration(node.duration) : ""}</span>
    <span class="figures since" title="since the session began">${duration(node.start - first)}</span>
  </div>`;
}

function State({ node }) {
  const word = wordOf(node);
  return word && word !== "finished" ? html`<${Badge} word=${word} />` : html`<span></span>`;
}

function wordOf(node) {
  if (node.undone) return "undone";
  if (node.kind === "run") return node.status?.word ?? "running";
  if (node.kind === "wait" && node.question && node.open) return "waiting";
  if (node.failed) return "failed";
  return node.attempt > 1 ? `try ${node.attempt}` : null;
}
