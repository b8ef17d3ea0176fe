// Tree of a session: runs, their steps, and in these the calls, tools, waits and changes.

/** One row of the tree. */
class Node {
  constructor(tree, kind, fields) {
    this.id = tree.nodes.length;
    this.kind = kind;
    this.children = [];
    this.parent = null;
    this.depth = 0;
    this.open = false;
    Object.assign(this, fields);
  }

  get duration() {
    return Math.max(0, (this.end ?? this.start) - this.start);
  }
}

/** All nodes in order of arrival; a node's id is its index. */
export class Tree {
  nodes = [];
  roots = [];

  add(parent, kind, fields) {
    const node = new Node(this, kind, fields);
    this.nodes.push(node);
    this.#hang(node, parent);
    return node;
  }

  /** Moves a node below another one, once its parent is known. */
  move(node, parent) {
    const from = node.parent ? node.parent.children : this.roots;
    from.splice(from.lastIndexOf(node), 1);
    this.#hang(node, parent);
  }

  #hang(node, parent) {
    node.parent = parent;
    (parent ? parent.children : this.roots).push(node);
    deepen(node, parent ? parent.depth + 1 : 0);
  }
}

function deepen(node, depth) {
  node.depth = depth;
  for (const child of node.children) deepen(child, depth + 1);
}

/**
 * Returns the visible rows: without descendants of closed nodes, and without nodes that `shows`
 * rejects (their children stay).
 */
export function rows(roots, closed, shows = () => true) {
  const seen = [];
  const rest = [...roots].reverse();
  while (rest.length) {
    const node = rest.pop();
    if (shows(node)) seen.push(node);
    if (closed.has(node.id)) continue;
    for (let at = node.children.length - 1; at >= 0; at -= 1) rest.push(node.children[at]);
  }
  return seen;
}

/** Returns the ancestors of a node, from the top. */
export function path(node) {
  const all = [];
  for (let at = node; at; at = at.parent) all.unshift(at);
  return all;
}
