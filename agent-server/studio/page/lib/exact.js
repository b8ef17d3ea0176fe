// JSON whose numbers keep their digits.

/** Number of significant digits that every number of JavaScript keeps. */
const SAFE_DIGITS = 15;

/**
 * Parses JSON. A number that JavaScript would round becomes raw JSON, which `JSON.stringify` writes
 * as it came. Browsers without raw JSON round it.
 */
export function parse(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (key, value, { source } = {}) =>
    typeof value === "number" && isRounded(value, source ?? "") ? JSON.rawJSON(source) : value);
}

function isRounded(value, source) {
  const digits = source.replace(/e.*$/i, "").replace(/[-.]/g, "").replace(/^0+/, "");
  return !Number.isFinite(value) || (digits.length > SAFE_DIGITS && String(value) !== source);
}
