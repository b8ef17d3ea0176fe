// What all views share: what the server has, and what the page is told to show.
import { api, ApiError } from "./api.js";
import { useEffect, useState } from "./html.js";

/** A value with readers. */
export function store(value) {
  const readers = new Set();
  return {
    get: () => value,
    set(next) {
      value = typeof next === "function" ? next(value) : next;
      for (const reader of readers) reader(value);
    },
    watch(reader) {
      readers.add(reader);
      return () => readers.delete(reader);
    },
  };
}

export function useStore(it) {
  const [value, set] = useState(it.get());
  useEffect(() => {
    set(it.get());
    return it.watch(set);
  }, [it]);
  return value;
}

export const config = store({ read_only: false, files: false });
export const agents = store([]);
export const runs = store(null);
export const questions = store([]);
/** Why the server could not be asked, if it could not. */
export const trouble = store(null);
/** True while a key must be typed. */
export const locked = store(false);
export const toasts = store([]);
/** What a screen reader is told. */
export const told = store("");

export function tell(text) {
  told.set("");
  setTimeout(() => told.set(text), 50);
}

let serial = 0;

/** Says something for some seconds, with something that can be done about it. */
export function toast(text, action) {
  const it = { id: (serial += 1), text, action };
  toasts.set((all) => [...all.slice(-2), it]);
  setTimeout(() => dismiss(it.id), action ? 9000 : 5000);
}

export const dismiss = (id) => toasts.set((all) => all.filter((it) => it.id !== id));

/** What to do with an error: ask for a key, or say it. */
export function failed(error) {
  if (error.name === "AbortError") return;
  if (error instanceof ApiError && error.wantsKey) locked.set(true);
  else toast(error.message);
}

async function look() {
  const [live, waiting] = await Promise.all([api.runs({ limit: 200 }), api.questions()]);
  if (waiting.length > questions.get().length) tell(`${waiting.length} questions wait for an answer`);
  runs.set(live);
  questions.set(waiting);
  trouble.set(null);
}

let timer;

/** Asks the server now, and every few seconds from then on; less often while it does not answer or nobody looks. */
export async function refresh() {
  clearTimeout(timer);
  let pause = document.hidden ? 15_000 : 2_500;
  try {
    await look();
  } catch (error) {
    if (error.wantsKey) {
      locked.set(true);
      return;
    }
    trouble.set(error.message);
    pause = 5_000;
  }
  timer = setTimeout(refresh, pause);
}

/** Begins, or begins again when a key was typed. */
export async function begin() {
  try {
    config.set(await api.config());
    agents.set(await api.agents());
    locked.set(false);
  } catch (error) {
    if (error.wantsKey) {
      locked.set(true);
      return;
    }
    trouble.set(error.message);
    timer = setTimeout(begin, 5_000);
    return;
  }
  await refresh();
}
