//! Extraction of JSON from a model's text.

use serde_json::Value;

use crate::arguments::{Repairs, decode, json_or_mended};

/// Maximum of candidate positions that turn out to be no JSON: the text may be untrusted.
const MOST_FALSE_STARTS: usize = 32;

/// Returns the JSON values in a model's text, in order: the whole text, or the content of code
/// fences, or JSON embedded in prose. Syntax errors with one obvious reading are repaired.
///
/// ```
/// use agent_tools::json_in;
/// use serde_json::json;
///
/// assert_eq!(json_in("Here you are: {\"a\": 1,} Anything else?"), [json!({"a": 1})]);
/// ```
pub fn json_in(text: &str) -> Vec<Value> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    if let Some(whole) = decode(text, &mut Repairs::default()) {
        return vec![whole];
    }
    let fenced: Vec<_> = fences(text).filter_map(mended).collect();
    if fenced.is_empty() { in_prose(text) } else { fenced }
}

fn mended(text: &str) -> Option<Value> {
    json_or_mended(text.trim(), &mut Repairs::default())
}

/// Returns the content of code fences; the last fence may be open.
fn fences(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("```").skip(1).step_by(2);
    parts.map(|part| part.split_once('\n').map_or(part, |(_language, inside)| inside))
}

fn in_prose(text: &str) -> Vec<Value> {
    let (mut found, mut at, mut false_starts) = (Vec::new(), 0, 0);
    while let Some(start) = text[at..].find(['{', '[']).map(|start| at + start)
        && false_starts < MOST_FALSE_STARTS
    {
        let rest = &text[start..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        if let Some(Ok(value)) = values.next() {
            found.push(value);
            at = start + values.byte_offset();
        } else if let Some(value) = up_to_last_bracket(rest).and_then(mended) {
            found.push(value);
            break;
        } else {
            at = start + 1;
            false_starts += 1;
        }
    }
    found
}

fn up_to_last_bracket(text: &str) -> Option<&str> {
    text.rfind(['}', ']']).map(|last| &text[..=last])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_found_whole_fenced_and_in_prose() {
        let one = json!({"a": 1});
        for text in [
            r#"{"a": 1}"#,
            "\n {\"a\": 1,}\n",
            "```json\n{\"a\": 1}\n```",
            "Here you are:\n```\n{\"a\": 1}\n```\nAnything else?",
            "Here you are:\n```json\n{\"a\": 1",
            "The answer is {\"a\": 1}. Anything else?",
            "As {you} may see in [1], it is {'a': 1,}.",
            r#""{\"a\": 1}""#,
        ] {
            assert_eq!(json_in(text).last(), Some(&one), "{text}");
        }
    }

    #[test]
    fn where_there_is_more_than_one_all_are_found() {
        assert_eq!(
            json_in(r#"[1] says {"a": {"b": 2}} or {"a": 3}"#),
            [json!([1]), json!({"a": {"b": 2}}), json!({"a": 3})]
        );
    }

    #[test]
    fn where_there_is_none_none_is_found() {
        for text in ["", " ", "I cannot do that.", "{", "a [b] c", &"[{".repeat(10_000)] {
            let found = json_in(text);
            assert!(found.iter().all(|v| *v == json!({})), "{text}: {found:?}");
        }
    }
}
