//! Parsing and validation of tool call arguments.

// Helpers take `json!(..)` values directly.
#![allow(clippy::needless_pass_by_value)]

use agent_core::{ErrorKind, StateField, StateSchema, ToolSpec};
use agent_tools::{ArgumentSchema, check_value};
use proptest::prelude::*;
use serde_json::{Value, json};

fn compile(parameters: Value) -> ArgumentSchema {
    ArgumentSchema::compile(&ToolSpec::new("x", "", parameters)).expect("a valid schema")
}

/// Tool that accepts any argument.
fn open() -> ArgumentSchema {
    compile(json!({"type": "object", "additionalProperties": true}))
}

fn object(properties: Value) -> ArgumentSchema {
    compile(json!({"type": "object", "properties": properties}))
}

fn problem(schema: &ArgumentSchema, args: Value, hidden: &[&str]) -> String {
    let error = schema.check(&args, hidden).expect_err("does not fit");
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    let text = error.message().strip_prefix("Invalid arguments for tool 'x': ").expect("names the tool");
    text.strip_suffix('.').expect("a sentence").to_owned()
}

// --- reading ---

#[test]
fn slips_with_one_reading_are_mended() {
    for (text, expected) in [
        ("", json!({})),
        ("  ", json!({})),
        ("null", json!({})),
        (r#"{"file_path": "/a.md""#, json!({"file_path": "/a.md"})),
        (r#"{"a": [1, {"b": "c"#, json!({"a": [1, {"b": "c"}]})),
        (r#"{"a": [1, 2}"#, json!({"a": [1, 2]})),
        (r#"{"a": 1}}"#, json!({"a": 1})),
        (r#"{"a": [1, 2,], }"#, json!({"a": [1, 2]})),
        (r#"{"a": 1,"#, json!({"a": 1})),
        ("```json\n{\"a\": 1}\n```", json!({"a": 1})),
        ("```\n{\"a\": 1,}", json!({"a": 1})),
        (r#""{\"a\": 1}""#, json!({"a": 1})),
        (r#""\"{\\\"a\\\": 1}\"""#, json!({"a": 1})),
        (r#"{'a': 'say "hi"', 'b': True, 'c': None}"#, json!({"a": "say \"hi\"", "b": true, "c": null})),
        ("{\"a\": \"one\ntwo\tthree\"}", json!({"a": "one\ntwo\tthree"})),
        (r#"{"a": "\d+ in C:\users"}"#, json!({"a": r"\d+ in C:\users"})),
        (r#"{"a": "it\'s \u00e9"}"#, json!({"a": "it's é"})),
        (r#"{"a": "cut\"#, json!({"a": "cut"})),
    ] {
        assert_eq!(open().parse(text).value, expected, "{text}");
    }
}

#[test]
fn what_has_no_single_reading_is_kept_as_it_was_written() {
    for text in [
        "not-json",
        "{\"a\": ",
        "{\"a\"",
        "{\"a\": tru",
        "{a: 1}",
        "{'a': 'it's'}",
        "{\"a\": 1]",
        "{\"a\": 1} x",
        "[1,,2]",
        "```",
        "'",
    ] {
        assert_eq!(open().parse(text).value, json!({"raw_arguments": text}), "{text}");
    }
}

#[test]
fn json_that_is_not_an_object_is_wrapped_and_fails_the_check() {
    let schema = object(json!({"a": {"type": "integer"}}));
    for (text, value) in
        [("[1,2]", json!([1, 2])), ("5", json!(5)), (r#""hello""#, json!("hello")), ("[1,2", json!([1, 2]))]
    {
        let args = schema.parse(text);
        assert_eq!(args.value, json!({"_": value}));
        assert!(args.repair.is_some());
        assert_eq!(problem(&schema, args.value, &[]), "unknown parameter '_' (known: a)");
    }
    assert_eq!(problem(&schema, schema.parse("not-json").value, &[]), "unknown parameter 'raw_arguments' (known: a)");
}

#[test]
fn a_parameters_other_name_is_mapped_to_its_own_at_any_depth() {
    let item = json!({"type": "object", "properties": {"old": {"type": "string"}, "n": {"type": "integer"}}});
    let schema =
        object(json!({"path": {"type": "string"}, "edits": {"type": "array", "items": item}, "x": {"type": "string"}}));
    let aliases = [("file", "path"), ("was", "old"), ("number", "n"), ("x", "path"), ("path", "old")];
    let aliases = aliases.map(|(alias, name)| (alias.to_owned(), name.to_owned()));
    let parsed = schema
        .parse_with(r#"{"file": "a", "edits": [{"was": "b", "number": "3"}, {"old": "c", "was": "d"}]}"#, &aliases);
    assert_eq!(parsed.value, json!({"path": "a", "edits": [{"old": "b", "n": 3}, {"old": "c", "was": "d"}]}));
    assert_eq!(parsed.repair.as_deref(), Some("renamed 'file', 'was', 'number'; converted 'edits'"));
    let own = schema.parse_with(r#"{"x": "kept", "path": "a"}"#, &aliases);
    assert_eq!(
        (own.value, own.repair),
        (json!({"x": "kept", "path": "a"}), None),
        "a parameter's own name is no alias"
    );
    assert_eq!(schema.parse(r#"{"file": "a"}"#).value, json!({"file": "a"}), "of another tool it is none");
}

#[test]
fn what_was_mended_is_reported_and_nothing_else_is() {
    let schema = object(json!({"n": {"type": "integer"}, "s": {"type": "string"}}));
    assert_eq!(schema.parse(r#"{"n": 1, "s": "1"}"#).repair, None);
    assert_eq!(schema.parse("").repair, None);
    assert_eq!(
        schema.parse(r#"{"n": "1","#).repair.as_deref(),
        Some("closed brackets; removed trailing commas; converted 'n'")
    );
}

#[test]
fn a_depth_bomb_is_neither_parsed_nor_a_crash() {
    for bomb in ["[".repeat(1_000_000), "{\"a\":".repeat(200_000), "\"[".repeat(100_000)] {
        assert_eq!(open().parse(&bomb).value, json!({"raw_arguments": bomb}));
    }
}

#[test]
fn nothing_is_made_that_nests_too_deep_to_be_read_again() {
    let schema = compile(json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "array"}}}}));
    for depth in 120..128 {
        let list = "[".repeat(depth);
        assert_eq!(open().parse(&list).value.get("_").is_some(), depth <= 126);
        let once = schema.parse(&json!({"l": list}).to_string()).value;
        assert_eq!(once["l"].is_array(), depth <= 126);
        assert_eq!(schema.parse(&once.to_string()).value, once);
    }
}

// --- conversion ---

#[test]
fn text_becomes_the_type_that_the_schema_wants() {
    let list = |of: &str| json!({"type": "array", "items": {"type": of}});
    for (schema, text, expected) in [
        (json!({"type": "boolean"}), "YES", json!(true)),
        (json!({"type": "boolean"}), "0", json!(false)),
        (json!({"type": "boolean"}), "maybe", json!("maybe")),
        (json!({"type": "integer"}), "5", json!(5)),
        (json!({"type": "integer"}), "5.0", json!(5)),
        (json!({"type": "integer"}), "5.5", json!("5.5")),
        (json!({"type": "number"}), "5.5", json!(5.5)),
        (json!({"type": "number"}), "5", json!(5)),
        (list("string"), "a, b", json!(["a", "b"])),
        (list("integer"), "1, 2", json!([1, 2])),
        (list("string"), r#"["a, b"]"#, json!(["a, b"])),
        (list("string"), "['a']", json!(["a"])),
        (list("object"), "a, b", json!("a, b")),
        (json!({"type": "object"}), r#"{"a": 1}"#, json!({"a": 1})),
        (json!({"type": "object"}), "bad", json!("bad")),
        (json!({"type": ["integer", "null"]}), "5", json!(5)),
        (json!({"type": ["integer", "null"]}), "null", json!(null)),
        (json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]}), "on", json!(true)),
        (json!({"anyOf": [{"type": "boolean"}, {"type": "integer"}]}), "5", json!(5)),
        (json!({"anyOf": [{"type": "boolean"}, {"type": "integer"}]}), "yes", json!("yes")),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), "5", json!("5")),
        (json!({"enum": [1, 2]}), "1", json!(1)),
        (json!({}), "5", json!("5")),
        (json!({"type": "string"}), "5", json!("5")),
    ] {
        let args = object(json!({"p": schema})).parse(&json!({"p": text}).to_string());
        assert_eq!(args.value["p"], expected, "{text} as {schema}");
    }
}

#[test]
fn nested_values_and_references_are_converted_too() {
    let schema = compile(json!({
        "type": "object",
        "properties": {"points": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]}}},
        "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    }));
    let args = schema.parse(r#"{"points": [{"x": "1"}, "{\"x\": \"2\"}", {"x": 3.0}]}"#);
    assert_eq!(args.value, json!({"points": [{"x": 1}, {"x": 2}, {"x": 3}]}));
    assert_eq!(args.repair.as_deref(), Some("converted 'points'"));
}

#[test]
fn a_float_that_is_whole_becomes_an_integer_only_where_nothing_else_will_do() {
    let schema = object(json!({"i": {"type": "integer"}, "n": {"type": "number"}}));
    assert_eq!(schema.parse(r#"{"i": 5.0, "n": 5.0}"#).value, json!({"i": 5, "n": 5.0}));
}

// --- checking ---

#[test]
fn all_problems_are_told_in_one_message() {
    let schema = compile(json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "n": {"type": "integer"}, "count": {"type": "integer"}},
        "required": ["count"],
    }));
    let text = problem(&schema, json!({"n": "notint", "zz": 1}), &[]);
    for part in
        ["'count' is required", "'n' must be an integer, got \"notint\"", "unknown parameter 'zz' (known: a, count, n)"]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert_eq!(text.matches("; ").count(), 2);
}

#[test]
fn reasons_are_in_words_that_help() {
    for (schema, value, expected) in [
        (json!({"enum": ["fast", "slow"]}), json!("slower"), r#"'p' must be "fast" or "slow", got "slower""#),
        (json!({"oneOf": [{"const": "a"}, {"const": "b"}]}), json!("c"), r#"'p' must be "a" or "b", got "c""#),
        (json!({"type": ["string", "null"]}), json!(1), "'p' must be null or a string, got 1"),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!([]),
            "'p' must be a string or null, got an array",
        ),
        (json!({"minimum": 1}), json!(0), "'p' must be at least 1, got 0"),
        (json!({"maxLength": 1}), json!("ab"), "'p' must have 1 or fewer characters, got \"ab\""),
        (json!({"items": {"type": "string"}}), json!(["a", 2]), "'p[1]' must be a string, got 2"),
        (json!({"required": ["q"]}), json!({}), "'p.q' is required"),
        (json!({"properties": {}, "additionalProperties": false}), json!({"q": 1}), "'p' has an unknown field 'q'"),
        (json!({"anyOf": [{"type": "object", "required": ["q"]}, {"type": "null"}]}), json!({}), "'p.q' is required"),
        (
            json!({"type": "integer"}),
            json!("y".repeat(100)),
            &format!("'p' must be an integer, got \"{}\" and more", "y".repeat(60)),
        ),
    ] {
        assert_eq!(problem(&object(json!({"p": schema})), json!({"p": value}), &[]), expected);
    }
}

#[test]
#[cfg(feature = "json-schema")]
fn a_pattern_is_named() {
    let schema = object(json!({"p": {"pattern": "^a"}}));
    assert_eq!(problem(&schema, json!({"p": "b"}), &[]), "'p' must match the pattern ^a, got \"b\"");
}

#[test]
#[cfg(not(feature = "json-schema"))]
fn a_keyword_that_cannot_be_checked_is_refused_with_what_to_change() {
    for rule in
        [json!({"pattern": "^a"}), json!({"items": {"contains": {}}}), json!({"anyOf": [{"propertyNames": {}}]})]
    {
        let parameters = json!({"type": "object", "properties": {"p": rule}});
        let error = ArgumentSchema::compile(&ToolSpec::new("x", "", parameters)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains("json-schema") && error.message().contains("/properties/p"), "{error}");
    }
}

#[test]
fn references_begin_at_the_part_that_has_an_id() {
    let inner = json!({"$id": "urn:inner", "$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}});
    let schema = compile(json!({"type": "object", "properties": {"p": inner}, "$defs": {"n": {"type": "string"}}}));
    assert!(schema.check(&json!({"p": 1}), &[]).is_ok());
    assert_eq!(problem(&schema, json!({"p": "a"}), &[]), "'p' must be an integer, got \"a\"");
}

#[test]
fn of_several_tagged_forms_the_one_with_the_right_tag_is_explained() {
    let form = |tag: &str, field: &str| json!({"type": "object", "required": ["kind", field], "properties": {"kind": {"const": tag}, field: {"type": "integer"}}});
    let schema = object(json!({"p": {"oneOf": [form("circle", "radius"), form("square", "side")]}}));
    assert_eq!(problem(&schema, json!({"p": {"kind": "square"}}), &[]), "'p.side' is required");
}

#[test]
fn unknown_parameters_are_refused_unless_the_schema_allows_more() {
    let unknown = "unknown parameter 'zz' (known: a)";
    let a = json!({"a": {"type": "string"}});
    for closed in [
        json!({"type": "object", "properties": a}),
        json!({"type": "object", "properties": a, "additionalProperties": false}),
        json!({"type": "object", "allOf": [{"properties": a}]}),
        json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": a}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": a}),
    ] {
        let schema = compile(closed);
        assert!(schema.check(&json!({"a": "x"}), &[]).is_ok());
        assert_eq!(problem(&schema, json!({"zz": 1}), &[]), unknown);
    }
    assert!(
        compile(json!({"type": "object", "properties": a, "additionalProperties": {"type": "integer"}}))
            .check(&json!({"zz": 1}), &[])
            .is_ok()
    );
    assert_eq!(problem(&object(json!({})), json!({"zz": 1}), &[]), "unknown parameter 'zz' (there are none)");
}

#[test]
fn hidden_values_are_never_told() {
    const SECRET: &str = "SECRET123";
    let nested = json!({"type": "object", "properties": {"k": {"type": "integer"}}, "additionalProperties": false});
    let free = json!({"type": "string", "maxLength": 1});
    for (schema, value) in [
        (json!({"type": "integer"}), json!(SECRET)),
        (json!({"enum": ["a"]}), json!(SECRET)),
        (json!({"anyOf": [{"type": "integer"}, {"const": 1}]}), json!(SECRET)),
        (json!({"not": {"type": "string"}}), json!(SECRET)),
        (free, json!(SECRET)),
        (nested.clone(), json!({"k": SECRET})),
        (nested, json!({SECRET: 1})),
        (json!({"type": "array", "items": {"type": "integer"}}), json!([SECRET])),
        #[cfg(feature = "json-schema")]
        (json!({"propertyNames": {"maxLength": 1}}), json!({SECRET: 1})),
    ] {
        let text = problem(
            &object(json!({"token": schema, "n": {"type": "integer"}})),
            json!({"token": value, "n": "q"}),
            &["token"],
        );
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.contains("'token' ") && text.contains("got \"q\""), "{text}");
    }
    let whole = compile(
        json!({"type": "object", "properties": {"token": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    );
    let text = problem(&whole, json!({"token": SECRET}), &["token"]);
    assert!(!text.contains(SECRET), "{text}");
}

#[test]
fn a_flood_of_problems_is_cut() {
    let schema = object(json!({"p": {"items": {"type": "string"}}}));
    let text = problem(&schema, json!({"p": (0..1000).collect::<Vec<_>>()}), &[]);
    assert!(text.ends_with("; and more") && text.len() < 2_000, "{text}");
}

// --- schemas ---

#[test]
fn invalid_names_and_schemas_are_refused_with_what_to_change() {
    let refused = |name: &str, parameters: Value| {
        let error = ArgumentSchema::compile(&ToolSpec::new(name, "", parameters)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    let fine = json!({"type": "object"});
    for name in ["", "with space", "é", &"x".repeat(65)] {
        assert!(refused(name, fine.clone()).contains("use 1 to 64 letters"));
    }
    for not_object in [json!({}), json!({"type": "string"}), json!(true), json!({"type": ["object", "string"]})] {
        assert!(refused("x", not_object).contains("must describe an object"));
    }
    assert!(refused("x", json!({"type": "object", "properties": {"a": {"type": "int"}}})).contains("/properties/a"));
    assert!(
        refused("x", json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}})).contains("'x'")
    );
}

#[test]
fn schemas_that_refer_to_themselves_do_no_harm() {
    let tree = json!({"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"type": "integer"}}});
    let schema = compile(tree);
    let args = schema.parse(r#"{"kids": [{"kids": [{"n": "1"}]}]}"#);
    assert_eq!(args.value, json!({"kids": [{"kids": [{"n": 1}]}]}));
    assert!(schema.check(&args.value, &[]).is_ok());

    let looped = json!({"type": "object", "$ref": "#", "anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    if let Ok(schema) = ArgumentSchema::compile(&ToolSpec::new("x", "", looped)) {
        drop(schema.check(&schema.parse(r#"{"a": "1"}"#).value, &[]));
    }
}

#[test]
fn a_state_field_is_checked_with_its_schema() {
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let check = check_value(&schema).expect("valid");
    assert_eq!(check(&json!([1])).expect_err("no text"), "'[0]' must be a string, got 1");
    assert_eq!(check(&json!(1)).expect_err("no list"), "it must be an array, got 1");
    let field = StateField::schema(schema).check(check).default_value(json!([1]));
    assert!(StateSchema::default().key("notes", field).check().is_err());
    assert!(check_value(&json!({"type": "no"})).is_err());
}

// --- properties ---

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..5).prop_map(|m| m.into_iter().collect::<Value>()),
        ]
    })
}

/// Generates text that often looks like JSON.
fn any_text() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\""),
        Just("'"),
        Just("\\"),
        Just("u00"),
        Just("\n"),
        Just("a"),
        Just("1"),
        Just("true"),
        Just("None"),
        Just(" "),
        Just("```\n"),
        Just("é"),
    ];
    prop_oneof![
        prop::collection::vec(token, 0..30).prop_map(|t| t.concat()),
        ".*",
        any_json().prop_map(|v| v.to_string())
    ]
}

proptest! {
    #[test]
    fn valid_objects_are_read_unchanged(value in any_json().prop_filter("an object", Value::is_object)) {
        let text = value.to_string();
        let exact: Value = serde_json::from_str(&text).expect("JSON");
        let args = open().parse(&text);
        prop_assert_eq!(args.value, exact);
        prop_assert_eq!(args.repair, None);
    }

    #[test]
    fn what_was_read_once_is_read_the_same_again(text in any_text()) {
        let schema = object(json!({"a": {"type": "integer"}, "l": {"type": "array"}, "_": {}, "raw_arguments": {}}));
        let once = schema.parse(&text).value;
        prop_assert!(once.is_object());
        let again = schema.parse(&once.to_string());
        prop_assert_eq!(&again.value, &once);
        prop_assert_eq!(again.repair, None);
        drop(schema.check(&once, &[]));
    }

    #[test]
    fn an_object_that_was_cut_keeps_its_complete_fields(a in "[a-z]{1,5}", b in ".{1,10}", cut in 0usize..40) {
        let whole = json!({"a": a, "b": b}).to_string();
        let end = (0..=cut.min(whole.len())).rev().find(|i| whole.is_char_boundary(*i)).expect("0 is one");
        let first_field = json!({"a": a}).to_string().len() - 1;
        let read = open().parse(&whole[..end]).value;
        if end > first_field && read.get("raw_arguments").is_none() {
            prop_assert_eq!(&read["a"], &json!(a));
        }
    }
}

#[test]
fn arguments_that_are_open_at_their_end_are_truncated_and_no_others() {
    for text in
        [r#"{"a": 1"#, r#"{"a": "b"#, r#"{"a": ["b""#, r#"{"a": tr"#, r#"{"a": {"b": 1}"#, "{'a': 'b", "[1", "{"]
    {
        assert!(open().parse(text).truncated, "{text}");
    }
    for text in ["", "null", "[]", "{}", r#"{"a": 1,}"#, r#"{"a": [1}"#, "{'a': 'b'}", "not-json", r#"{"a": 1}}"#] {
        assert!(!open().parse(text).truncated, "{text}");
    }
}

#[test]
fn an_object_that_may_be_null_is_a_schema_of_arguments() {
    let compiled = |parameters| ArgumentSchema::compile(&ToolSpec::new("find", "Finds.", parameters));
    let properties = json!({"a": {"type": "integer"}});
    let schema = compiled(json!({"type": ["object", "null"], "properties": properties})).expect("compiles");
    assert_eq!(schema.parse("null").value, json!({}));
    assert!(schema.check(&json!({"a": 1}), &[]).is_ok() && schema.check(&json!({"a": "x"}), &[]).is_err());
    for root in [json!({"type": "null"}), json!({"type": ["object", "string"]}), json!({})] {
        assert!(compiled(root.clone()).is_err(), "{root}");
    }
}
