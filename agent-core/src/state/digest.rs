//! Digests that bind an answer to its question.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Refusal;

/// Computes the digest of a question of `attempt` at the run `run`: `run.attempt.hash`.
pub(crate) fn of(run: &str, attempt: &str, about: &Value) -> String {
    let hash = Sha256::digest(format!("{run}\n{attempt}\n{}", canonical_json(about)));
    let mut digest = format!("{run}.{attempt}.");
    for byte in hash {
        let _ = write!(digest, "{byte:02x}"); // writing to a String cannot fail
    }
    digest
}

/// Returns the attempt part of a digest.
pub(crate) fn attempt(digest: &str) -> &str {
    parts(digest).map_or("", |(_, attempt, _)| attempt)
}

/// Reason why an answer with digest `given` does not match the question with digest `asked`.
pub(crate) fn mismatch(asked: &str, given: &str) -> Refusal {
    match (parts(asked), parts(given)) {
        (_, None) => Refusal::Forged,
        (Some((run, ..)), Some((other, ..))) if run != other => Refusal::AnotherRun,
        (Some((_, attempt, _)), Some((_, other, _))) if attempt != other => Refusal::Replayed,
        _ => Refusal::Edited,
    }
}

/// Splits a digest into run, attempt and hash. A run id may contain dots, the others do not.
fn parts(digest: &str) -> Option<(&str, &str, &str)> {
    let mut parts = digest.rsplitn(3, '.');
    let (hash, attempt, run) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hash = hash.len() == 64 && hash.bytes().all(|c| c.is_ascii_hexdigit());
    is_hash.then_some((run, attempt, hash))
}

/// Canonical JSON text: equal for equal values, regardless of the order of fields.
///
/// ```
/// use agent_core::engine::canonical_json;
/// use serde_json::{Value, json};
///
/// let other: Value = serde_json::from_str(r#"{"b": [1, {"y": 2, "x": 1}], "a": "q"}"#)?;
/// assert_eq!(canonical_json(&other), canonical_json(&json!({"a": "q", "b": [1, {"x": 1, "y": 2}]})));
/// assert_ne!(canonical_json(&json!({"a": "1"})), canonical_json(&json!({"a": 1})));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn canonical_json(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            let fields = sorted.into_iter();
            let fields = fields.map(|(name, v)| format!("{}:{}", Value::from(name.as_str()), canonical_json(v)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical_json).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_is_asked_about_changes_the_digest() {
        let base = of("r.1", "a", &json!({"x": 1}));
        assert_eq!(base, of("r.1", "a", &json!({"x": 1})));
        assert_eq!(attempt(&base), "a");
        for (other, why) in [
            (of("r.2", "a", &json!({"x": 1})), Refusal::AnotherRun),
            (of("r.1", "b", &json!({"x": 1})), Refusal::Replayed),
            (of("r.1", "a", &json!({"x": 2})), Refusal::Edited),
            (base[..base.len() - 1].to_owned(), Refusal::Forged),
            ("r.1.a".to_owned(), Refusal::Forged),
        ] {
            assert_eq!(mismatch(&base, &other), why, "{other}");
        }
    }
}
