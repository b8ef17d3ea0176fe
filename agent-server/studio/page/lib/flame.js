// Layout of a flame chart: the times and the lane of each span.

const SPANS = new Set(["run", "model", "tool", "wait", "retry", "compaction"]);

/**
 * Lays out spans: `{spans: [{node, start, end, lane}], lanes, start, end}`, times in milliseconds.
 * Concurrent spans are in different lanes, and children are below their parents. `now` is the end
 * of open spans.
 */
export function layout(roots, now) {
  const spans = [];
  const below = (children) => children.flatMap((node) => (SPANS.has(node.kind) ? [node] : below(node.children)));

  // Returns the lanes that a node and its descendants need, and places them at `top` once that is
  // known.
  const measure = (node) => {
    const start = node.start;
    const end = Math.max(start, node.open ? now : node.end ?? start);
    const placed = pack(below(node.children).map(measure));
    return { node, start, end, until: Math.max(end, placed.until), placed, height: 1 + placed.height };
  };
  const put = (box, top) => {
    spans.push({ node: box.node, start: box.start, end: box.end, lane: top });
    for (const child of box.placed.boxes) put(child, top + 1 + child.top);
  };
  const placed = pack(below(roots).map(measure));
  for (const box of placed.boxes) put(box, box.top);
  const start = spans.reduce((least, span) => Math.min(least, span.start), Infinity);
  const end = spans.reduce((most, span) => Math.max(most, span.end), -Infinity);
  return spans.length ? { spans, lanes: placed.height, start, end: Math.max(end, start + 1) } : { spans, lanes: 0, start: 0, end: 1 };
}

/** Places each box into the first lanes that are free when it begins. */
function pack(boxes) {
  const free = [];
  boxes.sort((one, two) => one.start - two.start);
  for (const box of boxes) {
    let top = 0;
    const blocked = () => {
      for (let lane = top + box.height - 1; lane >= top; lane -= 1) if (free[lane] > box.start) return lane;
      return -1;
    };
    for (let lane = blocked(); lane >= 0; lane = blocked()) top = lane + 1;
    box.top = top;
    for (let lane = top; lane < top + box.height; lane += 1) free[lane] = Math.max(box.until, box.start + 1);
  }
  return { boxes, height: free.length, until: boxes.reduce((most, box) => Math.max(most, box.until), 0) };
}

/** Returns round tick positions of a time axis, about `wanted` of them. */
export function ticks(from, to, wanted = 6) {
  const rough = (to - from) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough));
  const all = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return all;
}
