// Folds the events of a team's session into what its members said and did.
import { piece, pieces, textOf } from "./messages.js";

/** Most items that are kept: the journal has them all. */
const MOST = 2000;

export class TeamFold {
  /** Messages, turns and answers, oldest first. */
  items = [];
  /** Text that each member is writing. */
  writing = new Map();
  /** Newest change. */
  seq = 0;
  version = 0;
  #keys = new Set();

  /** Applies a change of the team. Returns whether the state has to be read again. */
  change(record) {
    if (record.seq < this.seq) return false;
    this.seq = record.seq;
    const change = record.change;
    const kind = typeof change === "string" ? change : Object.keys(change)[0];
    const told = changes[kind]?.(change[kind], record.member);
    if (told) this.#add({ key: `${record.seq}-${kind}`, time: record.time, ...told });
    if (kind === "turn_ended") this.writing.delete(change.turn_ended.member);
    this.version += 1;
    return true;
  }

  /** Applies an event of a member's run. Returns whether it is shown. */
  run(member, event, now = Date.now()) {
    const kind = event?.kind;
    if (!member || !kind || typeof kind === "string" || event.ids?.depth > 0) return false;
    if (kind.chunk?.text) {
      this.writing.set(member, (this.writing.get(member) ?? "") + kind.chunk.text.delta);
    } else if (kind.model_answered) {
      this.writing.delete(member);
      const all = pieces({ assistant: kind.model_answered.message });
      const text = textOf(all);
      const calls = all.filter((it) => it.kind === "tool_call").map((it) => it.name);
      const position = event.position ?? {};
      this.#add({ key: `${event.ids?.run_id}-${position.seq}`, time: now, by: member, kind: "said", text, calls });
    } else {
      return false;
    }
    this.version += 1;
    return true;
  }

  /** Items of one member: what it said, did, sent and received; all without a member. */
  of(member) {
    return member ? this.items.filter((item) => item.by === member || item.to?.includes(member)) : this.items;
  }

  #add(item) {
    if (this.#keys.has(item.key)) return;
    this.#keys.add(item.key);
    this.items.push(item);
    if (this.items.length > MOST) this.items.shift();
  }
}

/** Name of the sender of a message: `user`, `team` or a member. */
export const sender = (from) => (typeof from === "string" ? from : from?.member ?? "");

const changes = {
  started: () => ({ by: "team", kind: "note", text: "The run started." }),
  spawned: ({ member }) => ({ by: member, kind: "note", text: "joined the team" }),
  removed: ({ member }) => ({ by: member, kind: "note", text: "left the team" }),
  task: ({ task }, member) => ({ by: member ?? "team", kind: "task", text: `${task.id} ${task.title}`, status: task.status, task: task.id }),
  sent: ({ message }) => ({ by: sender(message.from), to: message.to, kind: "message", text: textOf((message.parts ?? []).map(piece)) }),
  turn_suspended: ({ member }) => ({ by: member, kind: "note", text: "waits for an answer" }),
  answered: ({ member }) => ({ by: member, kind: "note", text: "has an answer" }),
  turn_ended: ({ member, end }) => (end?.failed ? { by: member, kind: "problem", text: end.failed.error } : null),
  ended: ({ reason }) => ({ by: "team", kind: "note", text: `The run ended: ${typeof reason === "string" ? reason : Object.keys(reason)[0]}.` }),
};
