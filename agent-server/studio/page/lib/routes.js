// Addresses within the page: `#/session/NAME/trace?at=12`. What is in them can be shared; the key never is.

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

/** Changes the address without a step in the browser's history. */
export const settle = (...place) => {
  history.replaceState(null, "", link(...place));
};
