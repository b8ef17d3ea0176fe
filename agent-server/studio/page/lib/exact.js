// JSON whose whole numbers beyond 2^53 keep their digits.

/**
 * Parses JSON. A whole number that JavaScript would round becomes raw JSON, which `JSON.stringify`
 * writes as it came. Browsers without raw JSON round it.
 */
export function parse(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (key, value, { source } = {}) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? "") ? JSON.rawJSON(source) : value);
}
