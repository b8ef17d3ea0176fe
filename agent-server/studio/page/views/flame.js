// Flame chart of durations and concurrency. Drawn on a canvas, since a long run has many thousand
// spans; the trace is the accessible alternative.
import { clock, duration, used } from "../lib/format.js";
import { layout, ticks } from "../lib/flame.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/html.js";
import { Detail } from "./detail.js";
import { Empty } from "./parts.js";

const LANE = 22;
const AXIS = 24;
/** Pixels of a span without duration. */
const MARK = 4;

export function Flame({ session, name, readOnly, version }) {
  const { fold } = session;
  // Initially the newest run: days may lie between the runs of a session.
  const [wantedRun, setRun] = useState(null);
  const chosenRun = wantedRun ?? fold.tree.roots.at(-1)?.run ?? "";
  const [picked, pick] = useState(null);
  const roots = useMemo(() => fold.tree.roots.filter((node) => !chosenRun || node.run === chosenRun), [version, chosenRun]);
  const [now, setNow] = useState(fold.last);
  const isOpen = roots.some((node) => node.open);
  useEffect(() => {
    if (!isOpen) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isOpen]);
  const chart = useMemo(() => layout(roots, Math.max(now, fold.last)), [roots, now]);
  const [view, setView] = useState(null);
  const shown = view ?? { from: chart.start, to: chart.end };
  const zoom = (factor, at = (shown.from + shown.to) / 2) => {
    const [from, to] = [at - (at - shown.from) * factor, at + (shown.to - at) * factor];
    if (to - from < 2) return;
    setView(to - from >= chart.end - chart.start ? null : bounded(from, to, chart));
  };
  const move = (part) => {
    const by = (shown.to - shown.from) * part;
    setView(bounded(shown.from + by, shown.to + by, chart));
  };
  useEffect(() => setView(null), [chosenRun]);
  const press = (event) => {
    const act = { "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: () => setView(null), ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  if (!chart.spans.length) return html`<${Empty} title=${session.loading ? "Loading the journal" : "No runs in this session"} framed=${false} />`;
  const node = picked === null ? null : fold.tree.nodes[picked];
  const longest = chart.spans.filter((span) => span.node.kind === "model" || span.node.kind === "tool").sort((one, two) => two.end - two.start - (one.end - one.start))[0];
  return html`<div class="flame">
    <div class="bar tools">
      <select aria-label="Run" value=${chosenRun} onChange=${(event) => setRun(event.target.value)}><option value="">All runs</option>
        ${fold.tree.roots.map((it, at) => html`<option key=${it.id} value=${it.run}>${at + 1}: ${it.label}, ${clock(it.start)}</option>`)}
        </select>
      <span class="bar"><button onClick=${() => zoom(0.6)} aria-label="Closer">+</button>
        <button onClick=${() => zoom(1 / 0.6)} aria-label="Further away">−</button>
        <button onClick=${() => setView(null)} disabled=${!view}>All</button></span>
      <span class="legend"><i class="model"></i>model <i class="tool"></i>tool <i class="pause"></i>waiting, retrying <i class="compaction"></i>compaction</span>
    </div>
    <p class="unseen">
      ${chart.spans.length} spans in ${duration(chart.end - chart.start)}. ${longest ? `The longest is ${longest.node.label} with ${duration(longest.end - longest.start)}.` : ""} The trace shows the same as a list.</p>
    <${Chart} chart=${chart} view=${shown} picked=${picked} pick=${pick} zoom=${zoom} press=${press} move=${move} />
    ${node && html`<section class="card" aria-label="Details">
      <${Detail} key=${node.id} node=${node} session=${session} name=${name} readOnly=${readOnly} pick=${(it) => pick(it.id)} version=${version} />
      </section>`}
  </div>`;
}

function bounded(from, to, chart) {
  const room = to - from;
  const start = Math.max(chart.start, Math.min(from, chart.end - room));
  return { from: start, to: start + room };
}

function Chart({ chart, view, picked, pick, zoom, press, move }) {
  const canvas = useRef(null);
  const frame = useRef(null);
  const [width, setWidth] = useState(800);
  const [over, setOver] = useState(null);
  const [, redraw] = useState(0);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(([{ contentRect }]) => setWidth(Math.max(200, contentRect.width)));
    watcher.observe(frame.current);
    const themed = () => redraw((n) => n + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("theme", themed);
    dark.addEventListener("change", themed);
    return () => {
      watcher.disconnect();
      removeEventListener("theme", themed);
      dark.removeEventListener("change", themed);
    };
  }, []);
  const height = AXIS + chart.lanes * LANE + 4;
  const scale = width / (view.to - view.from);
  useLayoutEffect(() => draw(canvas.current, chart, view, width, height, picked));
  const spanAt = (event) => {
    const { left, top } = canvas.current.getBoundingClientRect();
    const lane = Math.floor((event.clientY - top - AXIS) / LANE);
    const time = view.from + (event.clientX - left) / scale;
    const slack = 3 / scale;
    return chart.spans.findLast((span) => span.lane === lane && span.start - slack <= time && span.end + slack >= time) ?? null;
  };
  const wheel = (event) => {
    if (!event.ctrlKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey) zoom(event.deltaY > 0 ? 1.15 : 0.87, view.from + event.offsetX / scale);
    else move(event.deltaX / width);
  };
  useEffect(() => {
    const it = canvas.current;
    it.addEventListener("wheel", wheel, { passive: false });
    return () => it.removeEventListener("wheel", wheel);
  });
  return html`<div class="chart" ref=${frame}>
    <canvas ref=${canvas} role="img" tabindex="0" aria-label="Flame chart of the runs; plus and minus zoom, arrows move" onKeyDown=${press}
      onClick=${(event) => pick(spanAt(event)?.node.id ?? null)} onMouseMove=${(event) => setOver(spanAt(event))} onMouseLeave=${() => setOver(null)} />
    <p class="figures hover" aria-hidden="true">
      ${over ? told(over) : "Hover over a span, or select one for its details"}
      </p>
  </div>`;
}

function told({ node, start, end }) {
  const cost = used(node.kind === "run" ? node.below : node.usage);
  return `${node.label} · ${duration(end - start)}${cost ? ` · ${cost}` : ""}`;
}

function draw(canvas, chart, view, width, height, picked) {
  const ratio = devicePixelRatio || 1;
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const styles = getComputedStyle(document.documentElement);
  const colour = (name) => styles.getPropertyValue(`--${name}`).trim();
  const colours = { run: colour("sunken"), model: colour("model"), tool: colour("tool"), wait: colour("pause"), retry: colour("pause"), compaction: colour("accent") };
  const [text, quiet, line, bad, accent] = ["text", "quiet", "line", "bad", "accent"].map(colour);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = `12px ${styles.getPropertyValue("--sans")}`;
  pen.textBaseline = "middle";
  const scale = width / (view.to - view.from);
  for (const at of ticks(view.from - chart.start, view.to - chart.start, Math.max(2, width / 140))) {
    const x = Math.round((at + chart.start - view.from) * scale) + 0.5;
    pen.fillStyle = line;
    pen.fillRect(x, 0, 1, height);
    pen.fillStyle = quiet;
    pen.fillText(duration(at), x + 4, AXIS / 2);
  }
  // Spans narrower than a pixel are drawn once per pixel: a long run has more spans than a screen
  // has columns.
  const last = new Map();
  for (const span of chart.spans) {
    if (span.end < view.from || span.start > view.to) continue;
    const x = Math.max(0, (span.start - view.from) * scale);
    // Spans without duration stay visible.
    const least = span.node.kind === "retry" || span.node.kind === "compaction" ? MARK : 1;
    const size = Math.max(least, Math.min(width, (span.end - view.from) * scale) - x);
    if (size <= least && last.get(span.lane) === Math.floor(x)) continue;
    last.set(span.lane, Math.floor(x));
    const y = AXIS + span.lane * LANE;
    const { node } = span;
    pen.fillStyle = node.failed || node.status?.word === "failed" ? bad : colours[node.kind];
    pen.fillRect(x, y + 1, Math.max(1, size - (size > 3 ? 1 : 0)), LANE - 3);
    if (node.id === picked) {
      pen.strokeStyle = accent;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 2, size - 2, LANE - 5);
    }
    if (size > 34) {
      pen.fillStyle = node.kind === "run" ? text : node.kind === "wait" || node.kind === "retry" ? "#1c1e22" : "#fff";
      pen.save();
      pen.beginPath();
      pen.rect(x, y, size - 4, LANE);
      pen.clip();
      pen.fillText(`${node.label}${size > 150 && used(node.usage) ? `  ${used(node.usage)}` : ""}`, x + 6, y + LANE / 2);
      pen.restore();
    }
  }
}
