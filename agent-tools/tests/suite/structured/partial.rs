//! Incremental JSON parsing.

use agent_tools::PartialJson;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("a number", |n| serde_json::Number::from_f64(n).map(Value::Number)),
        "\\PC{0,8}|[\"\\\\\\n\\t{}\\[\\],:🦀é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from);
        let fields = prop::collection::btree_map("[a-c\"\\\\🦀]{0,3}", inner, 0..5);
        prop_oneof![list, fields.prop_map(|fields| Value::Object(fields.into_iter().collect()))]
    })
}

/// Generates an object or a list.
fn any_document() -> impl Strategy<Value = Value> {
    any_value().prop_map(|value| if value.is_object() || value.is_array() { value } else { json!([value]) })
}

/// Escapes every character outside ASCII.
fn escaped(text: &str) -> String {
    let unit = |unit: u16| if unit < 128 { char::from(unit as u8).to_string() } else { format!("\\u{unit:04X}") };
    text.encode_utf16().map(unit).collect()
}

/// Splits the text at these places, or near them.
fn pieces<'a>(text: &'a str, places: &[prop::sample::Index]) -> Vec<&'a str> {
    let border = |at| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut ends: Vec<_> = places.iter().map(|place| border(place.index(text.len() + 1))).collect();
    ends.push(text.len());
    ends.sort_unstable();
    let starts = [0].into_iter().chain(ends.clone());
    starts.zip(ends.clone()).map(|(start, end)| &text[start..end]).collect()
}

/// Returns true if `part` can still become `whole`.
fn leads_to(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(part, whole)| leads_to(part, whole))
        }
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| leads_to(part, whole)))
        }
        (part, whole) => part == whole,
    }
}

proptest! {
    #[test]
    fn every_part_leads_to_the_whole_and_the_last_is_the_whole(
        value in any_document(),
        pretty in any::<bool>(),
        escape in any::<bool>(),
        around in prop::sample::select(vec![("", ""), ("Sure, {you} get: ", "\nAnything else?"), ("```json\n", "\n```")]),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.expect("serialises");
        let text = format!("{}{}{}", around.0, if escape { escaped(&text) } else { text }, around.1);
        let (mut json, mut before) = (PartialJson::new(), Value::Null);
        for piece in pieces(&text, &places) {
            json.push(piece);
            if let Some(part) = json.value() {
                prop_assert!(leads_to(part, &value), "{part} does not lead to {value}");
                prop_assert!(before.is_null() || leads_to(&before, part), "{before} is taken back in {part}");
                before = part.clone();
            }
        }
        prop_assert_eq!(json.value(), Some(&value));
        prop_assert!(json.is_complete());
    }

    #[test]
    fn nothing_that_is_written_panics(text in "[\\[\\]{}\",:\\\\u0-9tf é]{0,60}", places in any::<[prop::sample::Index; 3]>()) {
        let mut json = PartialJson::new();
        pieces(&text, &places).into_iter().for_each(|piece| json.push(piece));
    }
}

fn after(text: &str) -> Option<Value> {
    let mut json = PartialJson::new();
    json.push(text);
    json.value().cloned()
}

#[test]
fn what_is_not_certain_yet_is_not_there() {
    assert_eq!(after("The answer: "), None);
    assert_eq!(after(r#"{"a"#), None);
    assert_eq!(after(r#"{"a": 12"#), None, "it may become 123");
    assert_eq!(after(r#"{"a": tru"#), None);
    assert_eq!(after(r#"{"a": 12,"#), Some(json!({"a": 12})));
    assert_eq!(after(r#"{"a": "b\"#), Some(json!({"a": "b"})));
    assert_eq!(after(r#"{"a": "b\u00e"#), Some(json!({"a": "b"})));
    assert_eq!(after(r#"{"a": "\ud83d"#), Some(json!({"a": ""})), "half a character");
    assert_eq!(after(r#"{"a": "\ud83d\ude00"#), Some(json!({"a": "😀"})));
}

#[test]
fn slips_are_forgiven_where_the_reading_is_clear_and_else_end_it() {
    assert_eq!(after(r#"{"a": [1, 2,], "b": "c:\d","#), Some(json!({"a": [1, 2], "b": "c:\\d"})));
    assert_eq!(after(r#"{"a": 1, b: {"c": 2}}"#), Some(json!({"a": 1})));
    assert_eq!(after(r#"{"a": 'x', "b": {"c": 2}}"#), None, "a part is never taken for the whole");
    assert_eq!(after(r#"{"a": "\ud83d!"}"#), Some(json!({"a": "\u{fffd}!"})));
}

#[test]
fn the_newest_value_counts() {
    assert_eq!(after(r#"{"a": 1} no, {"a": 2"#), Some(json!({"a": 1})));
    assert_eq!(after(r#"{"a": 1} no, {"a": 2,"#), Some(json!({"a": 2})));
    assert_eq!(after(r#"{"a": 1} as {you} see"#), Some(json!({"a": 1})));
    let mut json = PartialJson::new().objects_only();
    json.push(r#"[1] {"a": [1]} [2]"#);
    assert_eq!(json.value(), Some(&json!({"a": [1]})));
}

#[test]
fn depth_is_bounded() {
    let deep = after(&"[".repeat(100_000)).expect("a value");
    assert!(serde_json::to_string(&deep).expect("serialises").len() < 1_000);
}

#[test]
fn many_small_pieces_cost_what_their_length_costs() {
    let fields: Map<_, _> =
        (0..20_000).map(|i| (format!("field-{i}"), json!({"text": "some words", "n": i}))).collect();
    let whole = Value::Object(fields);
    let text = whole.to_string();
    let (mut json, mut seen) = (PartialJson::new(), 0);
    // Rebuilding the value for each of these million pieces would take minutes.
    for piece in text.as_bytes().chunks(1) {
        json.push(std::str::from_utf8(piece).expect("ASCII"));
        seen += usize::from(json.value().is_some());
    }
    assert!(seen > text.len() - 20, "there is a value at any time");
    assert_eq!(json.value(), Some(&whole));
}
