// Shared state of all views: data of the server, and messages to the user.
import { api, ApiError } from "./api.js";
import { useEffect, useState } from "./html.js";

/** Observable value. */
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
export const teams = store([]);
export const runs = store(null);
export const questions = store([]);
/** Reason why the server could not be reached, if any. */
export const trouble = store(null);
/** True while the user must enter a key. */
export const locked = store(false);
export const toasts = store([]);
/** Announcement for screen readers. */
export const told = store("");

export function tell(text) {
  told.set("");
  setTimeout(() => told.set(text), 50);
}

let serial = 0;

/** Shows a message for a few seconds, with an optional action. */
export function toast(text, action) {
  const it = { id: (serial += 1), text, action };
  toasts.set((all) => [...all.slice(-2), it]);
  setTimeout(() => dismiss(it.id), action ? 9000 : 5000);
}

export const dismiss = (id) => toasts.set((all) => all.filter((it) => it.id !== id));

/** Handles an error: asks for a key, or shows the message. */
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

/**
 * Polls the server now and every few seconds; less often while it does not answer or the page is
 * hidden.
 */
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

/** Starts polling, or restarts it after a key was entered. */
export async function begin() {
  try {
    config.set(await api.config());
    agents.set(await api.agents());
    teams.set(await api.teams());
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
