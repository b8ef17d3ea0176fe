// Virtual scrolling: selection of the rows of a long list to render.

/** Returns `{from, to}` of rows of equal height; `to` is exclusive. */
export function shown(count, height, top, room, spare = 12) {
  const from = Math.max(0, Math.min(count, Math.floor(top / height)) - spare);
  const to = Math.min(count, Math.ceil((top + room) / height) + spare);
  return { from, to: Math.max(from, to) };
}

/**
 * Returns the scroll position that makes a row visible: unchanged if it already is, by one row for
 * an adjacent one, or centred for a distant one.
 */
export function reveal(at, height, top, room) {
  const [start, end] = [at * height, (at + 1) * height];
  if (start >= top && end <= top + room) return top;
  if (start < top - height || end > top + room + height) return Math.max(0, start - (room - height) / 2);
  return start < top ? start : end - room;
}
