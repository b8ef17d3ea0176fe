// Routes within the page: `#/session/NAME/trace?at=12`. They can be shared; the key is never part
// of them.

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", name, tab] = path.split("/").map(decodeURIComponent);
  return { page: page || "live", name: name ?? null, tab: tab ?? null, query: Object.fromEntries(new URLSearchParams(query)) };
}

export function link(page, name, tab, query = {}) {
  const path = [page, name, tab].filter((part) => part !== undefined && part !== null).map(encodeURIComponent).join("/");
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#/${path}${set.length ? `?${new URLSearchParams(set)}` : ""}`;
}

export const go = (...place) => {
  location.hash = link(...place);
};

/** Changes the route without an entry in the browser's history. */
export const settle = (...place) => {
  history.replaceState(null, "", link(...place));
};
