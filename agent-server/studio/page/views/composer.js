// Message composer with attachments.
import { html, useRef, useState } from "../lib/html.js";
import { api } from "../lib/api.js";
import { config, failed } from "../lib/store.js";

/**
 * Maximum size of all files of a message in bytes without uploads: encoded as text, more would
 * exceed the server's body limit.
 */
const MOST = 5 << 20;

/** Returns a file as a part of a message: by id if the server supports uploads, or else inline. */
const part = async (file, others) => {
  if (config.get().files) return { file: (await api.upload(file)).id };
  if (others + file.size > MOST) throw new Error(`${file.name} is too large: the files of a message may have 5 MiB in total.`);
  return whole(file);
};

/** Returns a file inline. */
const whole = (file) =>
  new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onerror = () => failed(new Error(`${file.name} cannot be read.`));
    reader.onload = () => {
      const source = { base64: reader.result.slice(reader.result.indexOf(",") + 1), mime: file.type || "application/octet-stream", name: file.name };
      done(/^image\/(png|jpeg|gif|webp)$/.test(source.mime) ? { image: source } : { document: source });
    };
    reader.readAsDataURL(file);
  });

/** Calls `send` with the input: a text, or parts if there are files. */
export function Composer({ send, placeholder, extra, focus }) {
  const [text, setText] = useState("");
  const [files, setFiles] = useState([]);
  const [busy, setBusy] = useState(false);
  const box = useRef(null);
  const picker = useRef(null);
  const attach = async (chosen) => {
    for (const file of chosen) {
      const others = files.reduce((sum, it) => sum + it.size, 0);
      try {
        const it = { part: await part(file, others), name: file.name, size: file.size };
        setFiles((all) => [...all, it]);
      } catch (error) {
        failed(error);
      }
    }
  };
  const submit = async (event) => {
    event?.preventDefault();
    if (busy || (!text.trim() && !files.length)) return;
    setBusy(true);
    const input = files.length ? [...(text.trim() ? [{ text }] : []), ...files.map((file) => file.part)] : text;
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
    ${files.length > 0 && html`<ul class="bar" aria-label="Attachments">
      ${files.map((file) => html`<li class="badge" key=${file.name}>${file.name}
      <button type="button" class="link" aria-label="Remove ${file.name}" onClick=${() => setFiles(files.filter((it) => it !== file))}>×</button>
      </li>`)}</ul>`}
    <div class="field">
      <textarea ref=${box} rows="1" aria-label="Message" placeholder=${placeholder} value=${text} autofocus=${focus} onInput=${type} onKeyDown=${press}
        onPaste=${(event) => event.clipboardData.files.length && attach(event.clipboardData.files)} />
      <input ref=${picker} type="file" multiple hidden onChange=${(event) => attach(event.target.files)} />
      <button type="button" class="bare" title="Attach files" onClick=${() => picker.current.click()}>+<span class="unseen"> Attach files</span>
        </button>
      ${extra}
      <button class="main" disabled=${busy || (!text.trim() && !files.length)}>Send</button>
    </div>
  </form>`;
}
