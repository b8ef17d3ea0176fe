use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::wire::{lenient::Str, open_struct::open_struct};

open_struct! {
    Said { name: Str<'a> = "name", count: u64 = "count", inner: Kept<'a, Vec<Str<'a>>> = "inner", }
}

/// JSON values, with texts that need escapes and texts that are long.
fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![".{0,8}", "[ -~]{0,60}", "[\\\\\"/\u{0}-\u{20}é𝄞]{0,20}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |n| serde_json::Number::from_f64(n).map(Value::Number)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((text.clone(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// JSON text, often with a few characters changed, so that it may be none.
fn texts() -> impl Strategy<Value = String> {
    let change = (any::<prop::sample::Index>(), "[\\[\\]{}\",:\\\\ntf0-9eE+.u \t\u{1}-]{0,2}", 0..3_usize);
    (values(), any::<bool>(), vec(change, 0..3)).prop_map(|(value, pretty, changes)| {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let mut text: Vec<char> = text.expect("JSON").chars().collect();
        for (at, put, take) in changes {
            let at = at.index(text.len() + 1);
            let end = (at + take).min(text.len());
            text.splice(at..end, put.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_the_cursor_reads_is_what_serde_json_reads(text in texts()) {
        if let Ok(value) = fast::<Value>(&text) {
            prop_assert_eq!(serde_json::from_str::<Value>(&text).expect("serde_json reads it too"), value);
        }
        if let Ok(json) = fast::<&RawValue>(&text) {
            prop_assert_eq!(serde_json::from_str::<&RawValue>(&text).expect("serde_json reads it too").get(), json.get());
        }
        if let Ok(text_read) = fast::<String>(&text) {
            prop_assert_eq!(serde_json::from_str::<String>(&text).expect("serde_json reads it too"), text_read);
        }
    }

    #[test]
    fn every_json_text_passes_the_cursor_as_it_is(value in values(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.expect("JSON");
        prop_assert_eq!(fast::<&RawValue>(&text).expect("it passes").get(), &text);
    }

    #[test]
    fn a_string_is_added_to_a_text_or_leaves_it_alone(text in texts()) {
        let mut all = "before".to_owned();
        match push_string(&text, &mut all) {
            Ok(()) => prop_assert_eq!(all, format!("before{}", serde_json::from_str::<String>(&text).expect("a string"))),
            Err(_) => {
                prop_assert!(serde_json::from_str::<String>(&text).is_err());
                prop_assert_eq!(all, "before");
            }
        }
    }
}

#[test]
fn the_usual_is_read_without_help() {
    let text =
        r#" {"name": "a\n\ud834\udd1e", "x": {"y": [1.5e3, {}, []]}, "inner": ["p", "q"], "count": 3, "z": null} "#;
    let said: Said<'_> = fast(text).expect("the cursor reads it");
    assert_eq!((&*said.name.expect("a name").0, said.count), ("a\n𝄞", Some(3)));
    let [(name, json)] = &said.rest[..] else { panic!("one field is unknown, and one is null") };
    assert_eq!((&*name.0, json.get()), ("x", r#"{"y": [1.5e3, {}, []]}"#));
    let Kept { value, json } = said.inner.expect("a list");
    assert_eq!(value.expect("texts").iter().map(|s| &*s.0).collect::<Vec<_>>(), ["p", "q"]);
    assert_eq!(json.get(), r#"["p", "q"]"#);
}

#[test]
fn what_is_kept_has_its_text_even_if_it_has_another_form() {
    let said: Said<'_> = from_str(r#"{"inner": {"no": "list"}, "count": 3}"#).expect("an object");
    let Kept { value, json } = said.inner.expect("something");
    assert!(value.is_err());
    assert_eq!((json.get(), said.count), (r#"{"no": "list"}"#, Some(3)));
}

#[test]
fn serde_json_says_what_is_wrong() {
    let error = from_str::<Said<'_>>(r#"{"count": "three"}"#).expect_err("no number");
    assert_eq!(error.to_string(), r#"invalid type: string "three", expected u64 at line 1 column 17"#);
    assert!(from_str::<Value>(r#"{"a": 1,}"#).is_err());
    assert!(from_str::<Value>("[1] x").is_err());
}

#[test]
fn depth_and_odd_numbers_are_left_to_serde_json() {
    let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(fast::<Value>(&deep(100)).is_err());
    assert!(from_str::<Value>(&deep(100)).is_ok());
    assert!(from_str::<Value>(&deep(100_000)).is_err());
    assert_eq!(
        from_str::<Value>("[-0, 1.5, 18446744073709551616]").expect("numbers"),
        json!([-0.0, 1.5, 1.844_674_407_370_955_2e19])
    );
}
