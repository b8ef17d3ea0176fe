//! Validation of values against JSON Schemas.
//!
//! With the feature `json-schema`, the crate `jsonschema` validates. Without it, a built-in
//! validator supports the keywords that schemas of Rust types use, and rejects a schema with other
//! keywords at compile time: no rule is left unchecked.

#[cfg(feature = "json-schema")]
mod full;
#[cfg(any(not(feature = "json-schema"), test))]
mod small;
#[cfg(any(not(feature = "json-schema"), test))]
mod survey;

use serde_json::Value;

use super::types::Type;

#[cfg(feature = "json-schema")]
pub(super) use self::full::Validator;
#[cfg(not(feature = "json-schema"))]
pub(super) use self::small::Validator;

/// Longest quotation of the model's text in an error, in characters.
const LONGEST_QUOTE: usize = 60;

/// One violation of a schema.
#[derive(Debug)]
pub(super) struct Violation {
    /// Path from the root of the value.
    pub(super) path: Vec<Segment>,
    /// Description of the value at that path.
    pub(super) got: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Name(String),
    Index(usize),
}

/// Kind of a violation.
#[derive(Debug)]
pub(super) enum Kind {
    /// The value has none of these types.
    Type(Vec<Type>),
    /// The value differs from this constant.
    Constant(Value),
    /// The value is not one of these.
    Enum(Vec<Value>),
    /// A field of this name is missing.
    Required(String),
    /// Fields that the schema does not name.
    Unknown(Vec<String>),
    /// The value matches none of the alternatives, for these reasons.
    NoForm(Vec<Vec<Violation>>),
    /// Another rule, described in words.
    Rule(String),
}

impl Violation {
    fn new(path: Vec<Segment>, value: &Value, kind: Kind) -> Self {
        Self { path, got: in_words(value), kind }
    }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > LONGEST_QUOTE => {
            let start: String = text.chars().take(LONGEST_QUOTE).collect();
            format!("{} and more", Value::from(start))
        }
        other => other.to_string(),
    }
}

fn rule(text: impl Into<String>) -> Kind {
    Kind::Rule(text.into())
}

#[cfg(all(test, feature = "json-schema"))]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Generates values that often match generated schemas.
    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2i64..4).prop_map(Value::from),
            prop_oneof![Just(1.0), Just(1.5), Just(-3.0)].prop_map(Value::from),
            "[ab\u{e9}]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|m| m.into_iter().collect::<Value>()),
            ]
        })
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let types = || prop::sample::select(vec!["array", "boolean", "integer", "null", "number", "object", "string"]);
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            types().prop_map(|one| json!({"type": one})),
            prop::collection::btree_set(types(), 1..3).prop_map(|several| json!({"type": several})),
            any_value().prop_map(|value| json!({"const": value})),
            prop::collection::vec(any_value(), 1..3).prop_map(|values| json!({"enum": values})),
            (-1i64..3).prop_map(|n| json!({"minimum": n, "exclusiveMaximum": n + 2})),
            (-1i64..3).prop_map(|n| json!({"exclusiveMinimum": n, "maximum": 2.5})),
            (0u64..3).prop_map(|n| json!({"minLength": n, "maxItems": n + 1, "minProperties": n})),
            (0u64..3).prop_map(|n| json!({"maxLength": n, "minItems": n, "maxProperties": n, "uniqueItems": true})),
            Just(json!({"$ref": "#/$defs/one"})),
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            let some = || prop::collection::vec(inner.clone(), 1..3);
            let fields = prop::collection::btree_map("[abc]", inner.clone(), 0..3);
            prop_oneof![
                (fields, inner.clone()).prop_map(|(f, o)| json!({"properties": f, "additionalProperties": o})),
                inner.clone().prop_map(|a| json!({"properties": {"a": a}, "required": ["a"]})),
                (some(), inner.clone()).prop_map(|(first, rest)| json!({"prefixItems": first, "items": rest})),
                some().prop_map(|all| json!({"allOf": all})),
                some().prop_map(|any| json!({"anyOf": any})),
                some().prop_map(|one| json!({"oneOf": one})),
                inner.clone().prop_map(|not| json!({"not": not})),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"if": a, "then": b})),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"if": a, "else": b})),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_small_check_judges_as_the_full_one_does(
            schema in any_schema(),
            one in any_value(),
            values in prop::collection::vec(any_value(), 1..8),
        ) {
            let schema = json!({"allOf": [schema], "$defs": {"one": {"enum": [one]}}});
            let (full, small) = (full::Validator::compile(&schema), small::Validator::compile(&schema));
            let (full, small) = (full.expect("valid"), small.expect("valid"));
            for value in values {
                let (full, small) = (full.violations(&value), small.violations(&value));
                prop_assert_eq!(full.is_empty(), small.is_empty(), "{}: {:?} and {:?}", value, full, small);
            }
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_without_end_fits_nothing() {
        let looped = json!({"$ref": "#", "anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
        let small = small::Validator::compile(&looped).expect("its keywords are known");
        assert!(!small.violations(&json!(1)).is_empty());
    }
}
