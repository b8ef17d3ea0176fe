// A session with live updates: its journal in pages, and the events of the active run.
import { parse } from "./exact.js";
import { api } from "./api.js";
import { MessageBuilder } from "./chunks.js";
import { Fold } from "./fold.js";

/** Entries of the first page, which is small so that content appears quickly, and of the others. */
const FIRST = 300;
const PAGE = 2000;
const PAUSE = 2000;

export class Session {
  fold = new Fold();
  /** Streamed messages without an entry yet, by run. */
  streams = new Map();
  loading = true;
  error = null;
  #stop = new AbortController();
  #wake = null;
  /** True if a reload was requested, even while one is running that began too early. */
  #poked = false;
  #drawn = 0;

  constructor(name, changed) {
    this.name = name;
    this.changed = () => {
      this.#drawn ||= requestAnimationFrame(() => {
        this.#drawn = 0;
        if (!this.#stop.signal.aborted) changed();
      });
    };
    this.#follow();
  }

  close() {
    this.#stop.abort();
    this.#wake?.();
  }

  /** Reloads at once, such as after an answer. */
  poke() {
    this.#poked = true;
    this.#wake?.();
  }

  async #follow() {
    while (!this.#stop.signal.aborted) {
      this.#poked = false;
      try {
        await this.#pull();
        this.error = null;
        const run = this.fold.newest();
        if (run?.node.open) await this.#stream(run.id);
      } catch (error) {
        if (error.name === "AbortError") return;
        this.error = error;
        this.loading = false;
        this.changed();
      }
      await this.#pause(document.hidden ? PAUSE * 5 : PAUSE);
    }
  }

  #pause(ms) {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
      if (this.#stop.signal.aborted || this.#poked) this.#wake();
    });
  }

  /**
   * Reads new entries of the journal. Each page is folded at once; the browser renders between two
   * pages.
   */
  async #pull() {
    for (;;) {
      const { entries, after } = await api.entries(this.name, this.fold.seq, this.fold.seq ? PAGE : FIRST, this.#stop.signal);
      for (const entry of entries) {
        this.fold.apply(entry);
        if (entry.body.model_accepted || entry.body.run_ended) this.streams.delete(entry.run);
      }
      if (entries.length || this.loading) this.changed();
      if (after === null || after === undefined || !entries.length) break;
    }
    this.loading = false;
    this.changed();
  }

  /** Follows an active run until it stops. */
  async #stream(run) {
    let pulling = null;
    let again = false;
    // A durable event means that there are entries to read; events meanwhile share one read.
    const pull = () => {
      if (pulling) again = true;
      else
        pulling = this.#pull().finally(() => {
          pulling = null;
          if (again) {
            again = false;
            pull();
          }
        });
      return pulling;
    };
    for await (const frame of api.events(run, { after: `${this.fold.seq}.0`, of: this.name, signal: this.#stop.signal })) {
      if (frame.event !== "message") break;
      const { position, ids, kind } = parse(frame.data);
      if (position.after === 0) pull().catch(() => {});
      else this.#passing(ids.run_id, kind);
    }
    await pull();
  }

  #passing(run, kind) {
    if (kind.chunk) {
      if (!this.streams.has(run)) this.streams.set(run, new MessageBuilder());
      this.streams.get(run).push(kind.chunk);
    } else {
      this.fold.passing(run, kind);
    }
    this.changed();
  }
}
