// Chat view: messages, tool calls, and open questions.
import { api } from "../lib/api.js";
import { clock, line } from "../lib/format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/html.js";
import { outputText, pieces, role } from "../lib/messages.js";
import { link } from "../lib/routes.js";
import { agents, failed, refresh, tell, toast, useStore } from "../lib/store.js";
import { Composer } from "./composer.js";
import { Badge, Code, Empty, Pieces, copyCode } from "./parts.js";
import { QuestionCard } from "./questions.js";

/** Number of items that are rendered initially; more are rendered on demand. */
const SHOWN = 120;

export function Chat({ session, name, waiting, running, state, readOnly }) {
  const { fold, streams, loading } = session;
  const [most, setMost] = useState(SHOWN);
  const who = useStore(agents);
  const items = fold.chat.slice(-most);
  const newest = fold.newest();
  const agent = newest?.ids.agent ?? who[0]?.name;
  const served = who.some((it) => it.name === agent);
  const streaming = newest?.node.open ? streams.get(newest.id)?.pieces() ?? [] : [];
  const isUnderWay = Boolean(newest?.node.open && running);
  const box = useFollowing([fold.version, streaming.at(-1)?.text?.length, waiting.length]);

  const was = useRef(isUnderWay);
  useEffect(() => {
    if (was.current && !isUnderWay) tell(waiting.length ? "The agent waits for an answer" : "The agent has answered");
    was.current = isUnderWay;
  }, [isUnderWay]);

  const send = async (input) => {
    if (isUnderWay) await api.steer(newest.id, input);
    else await api.start(agent, { input, session: name });
    await refresh();
    session.poke();
  };
  const refused = (error) => {
    if (error.code === "busy") toast("The run is leased by another process, possibly a dead one: its lease expires within half a minute. Try again then.");
    else failed(error);
  };
  const act = (what) => () => api.act(newest.id, what, name).then(() => (refresh(), session.poke()), refused);
  const canGoOn = newest && !loading && !running && !newest.undone && ["paused", "cancelled", "failed", "stopped"].includes(state);
  return html`<div class="chat">
    <div class="said" ref=${box} onClick=${copyCode} tabindex="0" role="region" aria-label="Conversation">
      <div class="column" role="log" aria-live="off">
        ${fold.chat.length > most && html`<button class="bare" onClick=${() => setMost(most + SHOWN * 2)}>Show ${Math.min(SHOWN * 2, fold.chat.length - most)} earlier of ${fold.chat.length - most}
          </button>`}
        ${!loading && !items.length && html`<${Empty} title="No messages yet" framed=${false} />`}
        ${items.map((item) => html`<${Item} key=${`${item.seq}${item.kind}`} item=${item} fold=${fold} name=${name} />`)}
        ${streaming.length > 0 && html`<article class="turn" aria-label=${`${agent} is answering`}><${Pieces} pieces=${streaming} />
          <span class="caret" aria-hidden="true"></span></article>`}
        ${isUnderWay && !streaming.length && html`<p class="quiet thinking" role="status">${doing(newest)}</p>`}
        ${waiting.map((it) => html`<${QuestionCard} key=${it.question.id} waiting=${it} answered=${() => session.poke()} />`)}
      </div>
    </div>
    ${!readOnly && served && html`<div class="foot"><div class="column">
      ${canGoOn && html`<p class="bar quiet">The run ${state === "failed" ? "failed" : `was ${state}`}. <button onClick=${act("resume")}>Resume</button></p>`}
      <${Composer} send=${send} placeholder=${isUnderWay ? "Steer the run" : `Message ${agent}`} focus=${!("ontouchstart" in window)}
        extra=${isUnderWay && html`<button type="button" onClick=${act("pause")}>Pause</button>
          <button type="button" onClick=${act("cancel")}>Stop</button>`} />
    </div></div>`}
    ${!readOnly && !served && agent && !loading && html`<p class="foot quiet centred">The agent ${agent} is not served here: this conversation is read-only.</p>`}
  </div>`;
}

/** Current activity of a run. */
function doing(run) {
  const open = run.step?.children.findLast((node) => node.kind === "tool" && node.open);
  return open ? `${open.label} runs …` : `${run.ids.agent} thinks …`;
}

/**
 * Keeps the end visible while the reader is there, and does not move a reader who scrolled back.
 */
function useFollowing(changes) {
  const box = useRef(null);
  const atEnd = useRef(true);
  useEffect(() => {
    const it = box.current;
    const read = () => (atEnd.current = it.scrollHeight - it.scrollTop - it.clientHeight < 60);
    it.addEventListener("scroll", read, { passive: true });
    const grown = new ResizeObserver(() => atEnd.current && (it.scrollTop = it.scrollHeight));
    grown.observe(it.firstElementChild);
    return () => {
      it.removeEventListener("scroll", read);
      grown.disconnect();
    };
  }, []);
  useLayoutEffect(() => {
    if (atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, changes);
  return box;
}

function Item({ item, fold, name }) {
  const undone = fold.runs.get(item.run)?.undone;
  const look = undone ? "turn undone" : "turn";
  const trace = item.node === undefined ? null : html`<a class="when" href=${link("session", name, "trace", { at: item.seq })} title="Show in the trace">
    ${clock(item.time)}</a>`;
  if (item.kind === "message") return html`<article class="${look} ${role(item.message)}" aria-label=${role(item.message)}>${trace}
    <${Pieces} pieces=${pieces(item.message)} plain /></article>`;
  if (item.kind === "answer") return html`<${Answer} item=${item} fold=${fold} name=${name} look=${look} trace=${trace} />`;
  if (item.kind === "question") {
    const node = fold.tree.nodes[item.node];
    return node.open ? null : html`<p class="event">
      ${item.question.payload?.tool ?? item.question.kind}: ${replied(node.reply)}${node.by ? ` by ${node.by}` : ""}</p>`;
  }
  if (item.kind === "replaced") return html`<p class="event">The conversation was ${item.reason}: ${item.before} messages, now ${item.after}</p>`;
  if (item.kind === "ended" && item.status.word !== "waiting") return html`<p class="event">
    <${Badge} word=${item.status.word} /> ${item.error ?? ""}</p>`;
  return null;
}

const replied = (reply) => {
  const words = { approve: "approved", edit: "approved with an edit", reject: "rejected", respond: "answered manually" };
  return words[reply?.decision] ?? (typeof reply === "string" ? reply : line(JSON.stringify(reply)));
};

function Answer({ item, fold, name, look, trace }) {
  const all = pieces(item.message);
  const run = fold.runs.get(item.run);
  const called = all.filter((piece) => piece.kind === "tool_call");
  return html`<article class=${look} aria-label=${item.agent}>${trace}
    <${Pieces} pieces=${all.filter((piece) => piece.kind !== "tool_call")} />
    ${called.map((call) => html`<${Call} key=${call.id} call=${call} node=${run?.tools.get(call.id)} name=${name} fold=${fold} run=${item.run} />`)}
  </article>`;
}

/** Status of a call without a successful result; nothing otherwise. */
function callState({ call, node, output, run, fold }) {
  if (output) return node.failed ? "failed" : null;
  if ([...fold.questions.values()].some(({ question }) => question.id.startsWith(`${call.id}/`))) return "waiting";
  return run?.node.open ? "running" : "not run";
}

/** A tool call, folded to one line. */
function Call({ call, node, name, fold, run }) {
  const [open, setOpen] = useState(false);
  const output = node?.answer ?? node?.output;
  const below = node?.below && fold.runs.get(node.below);
  const state = callState({ call, node, output, run: fold.runs.get(node?.run ?? run), fold });
  return html`<details class="call" open=${open} onToggle=${(event) => setOpen(event.target.open)}>
    <summary><code>${call.name}</code> <span class="quiet clip">${line(call.arguments, 90)}</span>
      ${state && html`<${Badge} word=${state} />`}</summary>
    ${open && html`<div class="stack"><${Code} text=${call.arguments} label="Arguments" />
      ${output && html`<pre class="block" tabindex="0" aria-label="Result">${outputText(output)}</pre>`}
      ${node?.seq && html`<a href=${link("session", name, "trace", { at: node.seq })}>In the trace${below ? `, with the run of ${below.ids.agent}` : ""}
        </a>`}</div>`}
  </details>`;
}
