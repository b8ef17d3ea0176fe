//! Differences between two requests.

use serde_json::Value;

use super::matching::Key;
use crate::error::bounded;

/// Maximum length of a printed value, in characters.
const LONGEST: usize = 120;

/// Length of the common text printed before two texts differ, in characters.
const CONTEXT: usize = 30;

/// Maximum number of printed differences.
const MOST: usize = 20;

/// Returns how much two requests differ: another method or URL outweighs any difference between
/// bodies.
pub(super) fn distance(recorded: &Key, asked: &Key) -> (bool, usize) {
    let lines = lines(recorded, asked).len();
    ((&recorded.method, &recorded.url) != (&asked.method, &asked.url), lines)
}

/// Returns one line for each difference.
pub(super) fn diff(recorded: &Key, asked: &Key) -> String {
    let lines = lines(recorded, asked);
    let more = lines.len().saturating_sub(MOST);
    let mut shown: Vec<_> = lines.into_iter().take(MOST).collect();
    if more > 0 {
        shown.push(format!("  and {more} more"));
    }
    shown.join("\n")
}

fn lines(recorded: &Key, asked: &Key) -> Vec<String> {
    let mut lines = Vec::new();
    let value = |text: &str| Value::String(text.to_owned());
    compare("method", Some(&value(&recorded.method)), Some(&value(&asked.method)), &mut lines);
    compare("url", Some(&value(&recorded.url)), Some(&value(&asked.url)), &mut lines);
    compare("body", Some(&recorded.body), Some(&asked.body), &mut lines);
    lines
}

fn compare(path: &str, recorded: Option<&Value>, asked: Option<&Value>, lines: &mut Vec<String>) {
    match (recorded, asked) {
        (recorded, asked) if recorded == asked => {}
        (Some(Value::Object(recorded)), Some(Value::Object(asked))) => {
            let added = asked.keys().filter(|name| !recorded.contains_key(*name));
            for name in recorded.keys().chain(added) {
                compare(&format!("{path}.{name}"), recorded.get(name), asked.get(name), lines);
            }
        }
        (Some(Value::Array(recorded)), Some(Value::Array(asked))) => {
            for at in 0..recorded.len().max(asked.len()) {
                compare(&format!("{path}[{at}]"), recorded.get(at), asked.get(at), lines);
            }
        }
        (Some(Value::String(recorded)), Some(Value::String(asked))) => {
            let common = recorded.char_indices().zip(asked.chars()).take_while(|((_, a), b)| a == b);
            let same: Vec<_> = common.map(|((at, _), _)| at).collect();
            let start = if same.len() > 2 * CONTEXT { same[same.len() - CONTEXT] } else { 0 };
            let shown = |text: &str| {
                let cut = if start > 0 { "…" } else { "" };
                format!("{cut}{}", bounded(&Value::from(&text[start..]).to_string(), LONGEST))
            };
            lines.push(format!("  {path}: recorded {}, asked {}", shown(recorded), shown(asked)));
        }
        (recorded, asked) => {
            let shown = |value: Option<&Value>| value.map_or("nothing".into(), |v| bounded(&v.to_string(), LONGEST));
            lines.push(format!("  {path}: recorded {}, asked {}", shown(recorded), shown(asked)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(body: Value) -> Key {
        Key { method: "POST".into(), url: "/v1".into(), body }
    }

    #[test]
    fn a_difference_is_named_by_its_place() {
        let recorded = key(json!({"messages": [{"content": "a"}], "n": 1}));
        let shown = diff(&recorded, &key(json!({"messages": [{"content": "b"}, {}], "stream": true})));
        assert_eq!(
            shown.lines().collect::<Vec<_>>(),
            [
                r#"  body.messages[0].content: recorded "a", asked "b""#,
                "  body.messages[1]: recorded nothing, asked {}",
                "  body.n: recorded 1, asked nothing",
                "  body.stream: recorded nothing, asked true",
            ]
        );
    }

    #[test]
    fn long_texts_are_shown_from_where_they_differ() {
        let long = "é".repeat(500);
        let shown = diff(&key(json!(format!("{long} one"))), &key(json!(format!("{long} two"))));
        let start = "é".repeat(CONTEXT - 1);
        assert_eq!(shown, format!("  body: recorded …\"{start} one\", asked …\"{start} two\""));
    }

    #[test]
    fn many_differences_are_not_all_shown() {
        let shown = diff(&key(json!([])), &key((0..50).collect()));
        assert_eq!((shown.lines().count(), shown.lines().last()), (21, Some("  and 30 more")));
    }

    #[test]
    fn another_address_is_further_away_than_any_body() {
        let asked = key(json!(1));
        let elsewhere = Key { url: "/v2".into(), ..asked.clone() };
        assert!(distance(&key(json!([1, 2, 3])), &asked) < distance(&elsewhere, &asked));
    }
}
