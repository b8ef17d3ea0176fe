// Which rows of a long list are drawn: those that are seen and some around them.

/** `{from, to}` of rows of one height; `to` is behind the last. */
export function shown(count, height, top, room, spare = 12) {
  const from = Math.max(0, Math.min(count, Math.floor(top / height)) - spare);
  const to = Math.min(count, Math.ceil((top + room) / height) + spare);
  return { from, to: Math.max(from, to) };
}

/** Where to scroll so that a row is seen: as it is if it already is, one row further, or with a row from afar in the middle. */
export function reveal(at, height, top, room) {
  const [start, end] = [at * height, (at + 1) * height];
  if (start >= top && end <= top + room) return top;
  if (start < top - height || end > top + room + height) return Math.max(0, start - (room - height) / 2);
  return start < top ? start : end - room;
}
