// Server-sent events over `fetch`: `EventSource` cannot send the key, and a key must not be in a
// URL.

/** Parser of frames `{id, event, data}` from text that arrives in pieces of any size. */
export class Frames {
  #rest = "";

  /** Returns the frames that `text` completes. */
  push(text) {
    // A final carriage return may be half of a line ending: wait for the next piece.
    const all = this.#rest + text;
    const held = all.endsWith("\r") ? all.length - 1 : all.length;
    const blocks = (all.slice(0, held).replace(/\r\n?/g, "\n")).split("\n\n");
    this.#rest = blocks.pop() + all.slice(held);
    return blocks.map(frame).filter((frame) => frame.data !== null);
  }
}

function frame(block) {
  const fields = { id: null, event: "message", data: null };
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at === 0) continue; // a comment, which keeps the connection alive
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "data") fields.data = fields.data === null ? value : `${fields.data}\n${value}`;
    else if (name === "id" || name === "event") fields[name] = value;
  }
  return fields;
}

/** Frames of a response, until it ends. */
export async function* framesOf(response) {
  const frames = new Frames();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    yield* frames.push(value);
  }
}
