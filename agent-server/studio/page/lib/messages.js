// Parsing of messages in the journal's form: `{"user": {..}}`, `{"assistant": {..}}`,
// `{"tool": {..}}`, `{"system": {..}}`.

import { parse } from "./exact.js";

export const role = (message) => Object.keys(message)[0];

export const content = (message) => message[role(message)];

/** Returns the pieces of a message, each `{kind, ..}`, for any role. */
export function pieces(message) {
  const inner = content(message) ?? {};
  return (inner.blocks ?? inner.parts ?? []).map(piece);
}

/** Returns a part or block as `{kind, ..its fields}`. */
export function piece(block) {
  const [kind, inner] = Object.entries(block)[0];
  return { kind, ...(typeof inner === "object" && inner !== null ? inner : { value: inner }) };
}

export const textOf = (pieces) =>
  pieces.filter((piece) => piece.kind === "text").map((piece) => piece.text).join("\n");

export const calls = (message) => pieces(message).filter((piece) => piece.kind === "tool_call");

/** Returns the text of a tool's output, as the model receives it. */
export const outputText = (output) => textOf((output?.parts ?? []).map(piece));

/** Pretty-prints JSON text; any other text stays unchanged. */
export function pretty(json) {
  try {
    return JSON.stringify(typeof json === "string" ? parse(json) : json, null, 2);
  } catch {
    return String(json);
  }
}

/** Returns a message as lines, for comparison. */
export function lines(message) {
  const inner = content(message) ?? {};
  const head = role(message) === "tool" ? `result of ${inner.name}` : role(message);
  const body = pieces(message).map((piece) => {
    if (piece.kind === "text") return piece.text;
    if (piece.kind === "tool_call") return `calls ${piece.name} ${pretty(piece.arguments)}`;
    if (piece.kind === "reasoning") return `thinks: ${piece.text ?? ""}`;
    return `(${piece.kind}${piece.name ? ` ${piece.name}` : ""})`;
  });
  return `[${head}]\n${body.join("\n")}\n`;
}

/**
 * Returns the source of an image: a `data:` URL, an uploaded file, or a URL that the page may not
 * load and only shows as text. Types that a browser could execute, such as SVG, are not shown.
 */
export function imageUrl(media) {
  const mime = media.mime ?? "image/png";
  if (!/^image\/(png|jpeg|gif|webp)$/.test(mime)) return null;
  const data = media.source?.base64;
  const kept = /^agent-file:([0-9a-f]{64})$/.exec(media.source?.url ?? "");
  if (kept) return `/api/files/${kept[1]}`;
  return data ? `data:${mime};base64,${data}` : null;
}
