// Shared components of all views.
import purify from "../vendor/dompurify/purify.js";
import { api } from "../lib/api.js";
import { columns, difference } from "../lib/diff.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/html.js";
import { clean, hardenLinks } from "../lib/markdown.js";
import { imageUrl, pretty } from "../lib/messages.js";
import { reveal, shown } from "../lib/window.js";

hardenLinks(purify);

const LOOKS = { running: "live", queued: "live", waiting: "wait", paused: "wait", failed: "bad", stopped: "bad", cancelled: "", finished: "good", undone: "" };

export const Badge = ({ word, title }) => html`<span class="badge ${LOOKS[word] ?? ""}" title=${title}>${word}</span>`;

export const Empty = ({ title, children, framed = true }) => html`<div class="empty ${framed ? "framed" : ""}"><strong>${title}</strong>
  ${children}</div>`;

export const Problem = ({ text, retry, label = "Try again" }) =>
  html`<div class="problem" role="alert"><span>${text}</span>${retry && html`<button onClick=${retry}>${label}</button>`}</div>`;

/** Tabs of one panel, with arrow key navigation. */
export function Tabs({ names, chosen, choose, label, panel }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...event.currentTarget.querySelectorAll("[role=tab]")];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    next.click();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${names.map(([name, text]) => html`<button key=${name} role="tab" id="${panel}-${name}" aria-controls=${panel} aria-selected=${name === chosen} tabindex=${name === chosen ? 0 : -1} onClick=${() => choose(name)}>
      ${text}</button>`)}
  </div>`;
}

/**
 * Markdown. While a text grows, rendering is throttled to a fifth of the time, whatever its length.
 */
export function Markdown({ text }) {
  const [drawn, draw] = useState(text);
  const cost = useRef(0);
  useEffect(() => {
    if (drawn === text) return;
    const timer = setTimeout(() => draw(text), Math.max(30, cost.current * 4));
    return () => clearTimeout(timer);
  }, [text, drawn]);
  const page = useMemo(() => {
    const start = performance.now();
    const cleaned = clean(purify, drawn);
    cost.current = performance.now() - start;
    return { __html: cleaned };
  }, [drawn]);
  return html`<div class="prose" dangerouslySetInnerHTML=${page} />`;
}

/** Copies the code beside a button within a rendered text. */
export async function copyCode(event) {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.closest("figure").querySelector("code").textContent).catch(() => {});
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

export const Code = ({ text, label }) => html`<pre class="block" tabindex="0" aria-label=${label}>${pretty(text)}</pre>`;

/** Difference of two texts: line by line, or `beside` each other where there is space. */
export function Diff({ before, now, label = "What changed", beside }) {
  const isTwo = useWide() && beside;
  const rows = useMemo(() => difference(before, now), [before, now]);
  const signs = { plus: "+", minus: "−", same: " " };
  const row = (it, at) =>
    it.sign === "skipped"
      ? html`<div key=${at} class="skipped">${it.count} unchanged lines</div>`
      : html`<div key=${at} class=${it.sign}><span aria-hidden=${it.sign === "same"}>${signs[it.sign]}</span><span>${it.text}</span></div>`;
  if (before === now) return html`<p class="quiet">Nothing changed.</p>`;
  if (isTwo) {
    const half = (it) => (it ? html`<span class=${it.sign} aria-hidden=${it.sign === "same"}>${signs[it.sign]}</span><span class=${it.sign}>
      ${it.text}</span>` : html`<span class="none"></span><span class="none"></span>`);
    const both = ({ left, right }, at) => (left?.sign === "skipped" ? row(left, at) : html`<div key=${at}>${half(left)}${half(right)}</div>`);
    return html`<div class="diff two" role="region" aria-label=${label} tabindex="0">${columns(rows).slice(0, 2000).map(both)}</div>`;
  }
  return html`<div class="diff" role="region" aria-label=${label} tabindex="0">
    ${rows.slice(0, 2000).map(row)}${rows.length > 2000 && html`<div class="skipped">${rows.length - 2000} more lines</div>`}</div>`;
}

const wide = matchMedia("(min-width: 900px)");

function useWide() {
  const [is, set] = useState(wide.matches);
  useEffect(() => {
    const read = () => set(wide.matches);
    wide.addEventListener("change", read);
    return () => wide.removeEventListener("change", read);
  }, []);
  return is;
}

/** Pieces of a message. */
export function Pieces({ pieces, plain }) {
  return pieces.map((piece, at) => {
    if (piece.kind === "text") return plain ? html`<p class="plain" key=${at}>${piece.text}</p>` : html`<${Markdown} key=${at} text=${piece.text} />`;
    if (piece.kind === "reasoning") return piece.text ? html`<details class="thought" key=${at}><summary>Thought</summary><p class="plain">
      ${piece.text}</p></details>` : null;
    if (piece.kind === "image") return html`<${Picture} key=${at} media=${piece} />`;
    if (piece.kind === "tool_call") return html`<details class="thought" key=${at}><summary>calls <code>${piece.name}</code></summary>
      <${Code} text=${piece.arguments} label="Arguments" /></details>`;
    if (piece.kind === "server") return html`<details class="thought" key=${at}><summary>${piece.name} at the provider</summary>
      <${Code} text=${piece.input ?? ""} /><${Code} text=${piece.output ?? ""} /></details>`;
    return html`<p class="quiet" key=${at}>${piece.kind} ${piece.name ?? ""}</p>`;
  });
}

function Picture({ media }) {
  const url = imageUrl(media);
  if (url?.startsWith("data:")) return html`<img class="picture" src=${url} alt=${media.name ?? "image"} />`;
  if (url) return html`<${Kept} key=${url} path=${url} name=${media.name ?? "image"} />`;
  const where = /^https?:\/\//.test(media.source?.url) ? media.source.url : null;
  return html`<p class="quiet">Image ${media.name ?? ""} ${where && html`at <a href=${where} target="_blank" rel="noopener noreferrer">
    ${where}</a>`}</p>`;
}

/** Image that the server stores. */
function Kept({ path, name }) {
  const [shown, show] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    let url = null;
    const found = (blob) => show((url = URL.createObjectURL(blob)));
    api.picture(path, stop.signal).then(found, (error) => error.name !== "AbortError" && show(""));
    return () => {
      stop.abort();
      if (url) URL.revokeObjectURL(url);
    };
  }, [path]);
  if (shown) return html`<img class="picture" src=${shown} alt=${name} />`;
  return html`<p class="quiet">Image ${name} ${shown === "" && "is no longer available"}</p>`;
}

/** Virtual list of rows of equal height. Keeps `at` visible when it changes. */
export function LongList({ count, height, row, at, label, role = "list", onKeyDown, activeId, follow }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, room: 600 });
  const read = () => box.current && setView({ top: box.current.scrollTop, room: box.current.clientHeight });
  useLayoutEffect(() => {
    read();
    const watcher = new ResizeObserver(read);
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (at === null || at === undefined || at < 0) return;
    const { scrollTop, clientHeight } = box.current;
    box.current.scrollTop = reveal(at, height, scrollTop, clientHeight);
  }, [at]);
  useLayoutEffect(() => {
    if (follow) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, count]);
  const { from, to } = shown(count, height, view.top, view.room);
  const slots = [];
  for (let place = from; place < to; place += 1) slots.push(html`<div class="slot" key=${place} role="presentation" style=${{ top: `${place * height}px`, height: `${height}px` }}>
    ${row(place)}</div>`);
  return html`<div class="scroller" ref=${box} role=${role} aria-label=${label} tabindex="0" aria-activedescendant=${activeId} onScroll=${read} onKeyDown=${onKeyDown}>
    <div class="room" role="presentation" style=${{ height: `${count * height}px` }}>${slots}</div>
  </div>`;
}
