// Dialogs based on the native element, which traps the focus and closes on Escape.
import { html, useEffect, useRef } from "../lib/html.js";
import { store, useStore } from "../lib/store.js";

const open = store(null);

/** Shows a dialog; `content` is a function of the closing callback. */
export const show = (title, content) => open.set({ title, content });
const close = () => open.set(null);

export function Dialogs() {
  const it = useStore(open);
  const box = useRef(null);
  useEffect(() => {
    if (it) box.current?.showModal();
  }, [it]);
  if (!it) return null;
  return html`<dialog ref=${box} aria-labelledby="dialog-title" onClose=${close}>
    <div class="body"><h1 id="dialog-title">${it.title}</h1>${it.content(() => box.current?.close())}</div>
  </dialog>`;
}

/** Asks for confirmation of an irreversible action. */
export function confirm(title, text, word, act) {
  const run = (done) => async (event) => {
    event.preventDefault();
    done();
    await act();
  };
  show(title, (done) => html`<form onSubmit=${run(done)}>
    <p>${text}</p>
    <div class="bar"><button type="button" onClick=${done} autofocus>Cancel</button><button class="risk">${word}</button></div>
  </form>`);
}

const KEYS = [
  ["?", "this help"], ["/", "search sessions"], ["n", "new chat"], ["g l", "live runs"], ["g s", "sessions"], ["g q", "questions"],
  ["1 – 4", "chat, trace, flame chart, state of a session"], ["↑ ↓", "move in the trace"], ["← →", "collapse and expand"],
  ["Enter", "send; in the trace, look at details"], ["Shift Enter", "a new line"], ["+ − 0", "zoom the flame chart, and reset the zoom"], ["t", "light, dark or as the system"], ["Esc", "close; leave a field"],
];

export const help = () =>
  show("Keys", (done) => html`<dl class="keys">${KEYS.map(([keys, what]) => html`<dt>
    ${keys.split(" ").map((key) => (key === "–" ? " – " : html`<kbd>${key}</kbd> `))}</dt><dd>${what}</dd>`)}</dl>
    <div class="bar"><button class="main" onClick=${done} autofocus>Close</button></div>`);
