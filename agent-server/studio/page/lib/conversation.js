// History of an agent as the model received it, as it grew. A request refers to the list and its
// length at that time, so that keeping all requests of a run costs no more than keeping the
// conversation.
import { calls } from "./messages.js";

/** Append-only list; replacing messages creates a new list. */
class Grown {
  constructor(messages = []) {
    this.messages = messages;
  }
}

export class Conversation {
  #list = new Grown();
  #turn = null;

  /** Current conversation: the messages that a model call receives now. */
  request() {
    return { list: this.#list, length: this.#list.messages.length };
  }

  push(message) {
    this.#list.messages.push(message);
  }

  replace(messages) {
    this.#list = new Grown([...messages]);
  }

  restore(request) {
    this.#list = new Grown(told(request));
    this.#turn = null;
  }

  /** An answer with calls enters the history together with their results. */
  answered(message) {
    const wrapped = { assistant: message };
    if (calls(wrapped).length) this.#turn = { message: wrapped, results: new Map() };
    else this.push(wrapped);
  }

  result(id, name, output) {
    const { parts = [], is_error } = output ?? {};
    this.#turn?.results.set(id, { tool: { call_id: id, name, parts, is_error } });
  }

  turnEnded(changed = {}) {
    const turn = this.#turn;
    if (!turn) return;
    this.#turn = null;
    this.push(turn.message);
    for (const call of calls(turn.message)) {
      const result = turn.results.get(call.id);
      if (changed[call.id]) this.push({ tool: { ...result?.tool, call_id: call.id, name: call.name, ...changed[call.id] } });
      else if (result) this.push(result);
    }
  }
}

/** Returns the messages of a request. */
export const told = (request) => request.list.messages.slice(0, request.length);

/**
 * Compares a request with the previous one: the number of unchanged messages, and the removed and
 * the added ones.
 */
export function news(before, now) {
  const messages = told(now);
  if (!before) return { same: 0, gone: [], fresh: messages };
  if (before.list === now.list) return { same: before.length, gone: [], fresh: messages.slice(before.length) };
  const old = told(before);
  let same = 0;
  while (same < old.length && same < messages.length && alike(old[same], messages[same])) same += 1;
  return { same, gone: old.slice(same), fresh: messages.slice(same) };
}

const alike = (one, two) => one === two || JSON.stringify(one) === JSON.stringify(two);
