// Line differences of two texts, as rows for display.
import { diffLines } from "../vendor/diff/diff/line.js";

/** Lines of context around a change. */
const AROUND = 3;

/**
 * Returns `[{sign, text}]`; unchanged lines far from any change are one row
 * `{sign: "skipped", count}`.
 */
export function difference(before, now) {
  // Limited: two large texts without common lines would block the page.
  const parts = diffLines(before, now, { timeout: 800 }) ?? [{ removed: true, value: before }, { added: true, value: now }];
  return parts.flatMap((part, at) => {
    const all = part.value.replace(/\n$/, "").split("\n");
    if (part.added) return all.map((text) => ({ sign: "plus", text }));
    if (part.removed) return all.map((text) => ({ sign: "minus", text }));
    return folded(all, at > 0, at < parts.length - 1);
  });
}

function folded(all, follows, precedes) {
  const head = follows ? AROUND : 0;
  const tail = precedes ? AROUND : 0;
  const same = (texts) => texts.map((text) => ({ sign: "same", text }));
  if (all.length <= head + tail + 1) return same(all);
  return [...same(all.slice(0, head)), { sign: "skipped", count: all.length - head - tail }, ...same(all.slice(all.length - tail))];
}

/**
 * Returns the same rows in two columns, `{left, right}`: removed lines beside their replacements.
 */
export function columns(rows) {
  const paired = [];
  let [gone, fresh] = [[], []];
  const flush = () => {
    for (let at = 0; at < Math.max(gone.length, fresh.length); at += 1) paired.push({ left: gone[at] ?? null, right: fresh[at] ?? null });
    [gone, fresh] = [[], []];
  };
  for (const row of rows) {
    if (row.sign === "minus") gone.push(row);
    else if (row.sign === "plus") fresh.push(row);
    else {
      flush();
      paired.push({ left: row, right: row });
    }
  }
  flush();
  return paired;
}

/**
 * Compares two runs block by block, matched by title: `[{title, same, left, right}]`; null where a
 * run lacks the block.
 */
export function sideBySide(left, right) {
  const [ones, twos] = [left, right].map((blocks) => new Map(blocks.map((block) => [block.title, block.text])));
  return [...new Set([...ones.keys(), ...twos.keys()])].map((title) => {
    const [one, two] = [ones.get(title) ?? null, twos.get(title) ?? null];
    return { title, same: one === two, left: one, right: two };
  });
}
