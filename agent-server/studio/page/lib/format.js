// Formatting of numbers and times.

const counts = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat("en");

export const count = (number) => (number < 10_000 ? whole.format(number) : counts.format(number));
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Formats millionths of a US dollar. */
export function money(micros) {
  if (!micros) return "$0";
  const dollars = micros / 1e6;
  return dollars >= 0.01 ? `$${dollars.toFixed(2)}` : `$${dollars.toPrecision(2)}`;
}

/** Formats milliseconds. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`;
}

export function ago(time, now = Date.now()) {
  const past = now - time;
  if (past < 45_000) return "now";
  if (past < 3_600_000) return `${Math.round(past / 60_000)} min`;
  if (past < 86_400_000) return `${Math.round(past / 3_600_000)} h`;
  return new Date(time).toISOString().slice(0, 10);
}

export const clock = (time) => new Date(time).toLocaleTimeString("en-GB", { hour12: false });
export const moment = (time) => `${new Date(time).toISOString().slice(0, 10)} ${clock(time)}`;

export const prompt = (usage) => usage.input + usage.cached + usage.cache_write;

/** Formats input and output tokens, and the cost where prices are known. */
export function used(usage) {
  if (!usage?.calls) return "";
  const cost = usage.priced ? ` · ${money(usage.cost)}` : "";
  return `${count(prompt(usage))} → ${count(usage.output)}${cost}`;
}

export function add(sum, usage) {
  for (const [field, value] of Object.entries(usage ?? {})) sum[field] = (sum[field] ?? 0) + value;
  return sum;
}

/** Returns the first line of a text, limited to the length of a row. */
export const line = (text, most = 200) => {
  const start = String(text ?? "").slice(0, most * 2).replace(/\s+/g, " ").trim();
  return start.length > most ? `${start.slice(0, most - 1)}…` : start;
};

/**
 * Formats a status such as `{"finished": "text"}` or `"paused"` as one word, with the reason if
 * there is one.
 */
export function status(value) {
  if (value === null || value === undefined) return { word: "running" };
  if (typeof value === "string") return { word: value === "interrupted" ? "waiting" : value };
  const [word, reason] = Object.entries(value)[0] ?? ["unknown"];
  return { word, reason: typeof reason === "string" ? reason : JSON.stringify(reason) };
}
