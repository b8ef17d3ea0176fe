// Message that is assembled from the chunks of a stream.

export class MessageBuilder {
  #blocks = [];

  push(chunk) {
    if (chunk === "restart") {
      this.#blocks = [];
      return;
    }
    const [kind, { index, ...fields }] = Object.entries(chunk)[0];
    const last = (wanted) => this.#blocks.findLast((block) => block.index === index && block.kind === wanted);
    if (kind === "text" || kind === "reasoning") {
      let block = last(kind);
      if (!block) this.#blocks.push((block = { index, kind, text: "" }));
      block.text += fields.delta;
    } else if (kind === "tool_call") {
      this.#blocks.push({ index, kind, id: fields.id, name: fields.name, arguments: "" });
    } else if (kind === "arguments") {
      const block = last("tool_call");
      if (block) block.arguments += fields.delta;
    } else if (kind === "block") {
      const [known, inner] = Object.entries(fields.block)[0];
      const block = last(known);
      if (block) Object.assign(block, inner);
      else this.#blocks.push({ index, kind: known, ...inner });
    }
  }

  /** The pieces so far. */
  pieces() {
    return this.#blocks.filter((block) => block.kind !== "text" || block.text);
  }
}
