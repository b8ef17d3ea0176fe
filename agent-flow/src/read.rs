//! Parsers for the roles' answers: JSON if there is any, otherwise labelled sections.

use agent_tools::json_in;
use serde_json::{Map, Value};

/// Returns the last JSON object in the text that has all these fields.
pub(crate) fn object_with(text: &str, fields: &[&str]) -> Option<Map<String, Value>> {
    let objects = json_in(text).into_iter().rev().filter_map(|value| match value {
        Value::Object(object) => Some(object),
        _ => None,
    });
    objects.into_iter().find(|object| fields.iter().all(|field| object.contains_key(*field)))
}

/// Returns a field as text, regardless of its type; empty if it is missing.
pub(crate) fn field(object: &Map<String, Value>, name: &str) -> String {
    match object.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Returns the text after each label, up to the next label; the last occurrence of a label wins.
/// Case, Markdown marks, and hyphens and spaces inside a label are ignored.
pub(crate) fn sections<const N: usize>(text: &str, labels: [&str; N]) -> [Option<String>; N] {
    let mut found: [Option<String>; N] = [const { None }; N];
    let mut open = None;
    for line in text.lines() {
        if let Some((at, rest)) = label_of(line, &labels) {
            open = Some(at);
            found[at] = Some(rest.trim().to_owned());
        } else if let Some(section) = open.and_then(|at| found[at].as_mut()) {
            section.push('\n');
            section.push_str(line);
        }
    }
    found.map(|section| section.map(|text| text.trim().trim_matches('*').trim().to_owned()))
}

/// Returns the label at the beginning of a line, and the rest of the line.
fn label_of<'a>(line: &'a str, labels: &[&str]) -> Option<(usize, &'a str)> {
    let (head, rest) = line.split_once(':')?;
    let head = squeezed(head);
    let at = labels.iter().position(|label| squeezed(label) == head)?;
    Some((at, rest.trim_start_matches('*')))
}

/// Keeps only the letters, so that `**Sub-Goal**` and `2. sub goal` are equal.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_in_any_dress_and_the_last_of_a_kind_counts() {
        let text = "Context: old\n**Sub-Goal:** first\n\n1. **Context**: new\n and more\n- sub goal: find it: now\nTool Name: `x`";
        let [context, goal, tool] = sections(text, ["Context", "Sub-Goal", "Tool Name"]);
        assert_eq!(context.as_deref(), Some("new\n and more"));
        assert_eq!(goal.as_deref(), Some("find it: now"));
        assert_eq!(tool.as_deref(), Some("`x`"));
        assert_eq!(sections("nothing of the kind", ["Context"]), [None]);
    }

    #[test]
    fn of_several_objects_the_last_with_the_fields_counts() {
        let object = object_with(r#"{"a": 1} then {"a": " x "} and {"b": 2}"#, &["a"]).expect("there");
        assert_eq!((field(&object, "a"), field(&object, "b")), ("x".to_owned(), String::new()));
    }
}
