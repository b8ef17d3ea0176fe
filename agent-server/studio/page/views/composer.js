// Where a person writes, with files that are sent along.
import { api } from "../lib/api.js";
import { html, useRef, useState } from "../lib/html.js";
import { failed } from "../lib/store.js";

/** `send` is given the input: a text, or its parts where files are with it. */
export function Composer({ send, placeholder, extra, focus }) {
  const [text, setText] = useState("");
  const [files, setFiles] = useState([]);
  const [busy, setBusy] = useState(false);
  const box = useRef(null);
  const picker = useRef(null);
  const attach = async (chosen) => {
    for (const file of chosen) {
      try {
        const kept = await api.upload(file);
        setFiles((all) => [...all, { id: kept.id, name: file.name }]);
      } catch (error) {
        failed(error);
      }
    }
  };
  const submit = async (event) => {
    event?.preventDefault();
    if (busy || (!text.trim() && !files.length)) return;
    setBusy(true);
    const input = files.length ? [...(text.trim() ? [{ text }] : []), ...files.map(({ id }) => ({ file: id }))] : text;
    try {
      await send(input);
      setText("");
      setFiles([]);
      if (box.current) box.current.style.height = "";
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
      box.current?.focus();
    }
  };
  const type = (event) => {
    setText(event.target.value);
    event.target.style.height = "";
    event.target.style.height = `${Math.min(event.target.scrollHeight + 2, 260)}px`;
  };
  const press = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  return html`<form class="composer" onSubmit=${submit} onDragOver=${(event) => event.preventDefault()} onDrop=${(event) => { event.preventDefault(); attach(event.dataTransfer.files); }}>
    ${files.length > 0 && html`<ul class="bar" aria-label="Files that are sent along">
      ${files.map((file) => html`<li class="badge" key=${file.id}>${file.name}
      <button type="button" class="link" aria-label="Leave ${file.name} out" onClick=${() => setFiles(files.filter((it) => it !== file))}>×</button>
      </li>`)}</ul>`}
    <div class="field">
      <textarea ref=${box} rows="1" aria-label="Message" placeholder=${placeholder} value=${text} autofocus=${focus} onInput=${type} onKeyDown=${press} onPaste=${(event) => event.clipboardData.files.length && attach(event.clipboardData.files)} />
      <input ref=${picker} type="file" multiple hidden onChange=${(event) => attach(event.target.files)} />
      <button type="button" class="bare" title="Send files along" onClick=${() => picker.current.click()}>+<span class="unseen"> Send files along</span>
        </button>
      ${extra}
      <button class="main" disabled=${busy || (!text.trim() && !files.length)}>Send</button>
    </div>
  </form>`;
}
