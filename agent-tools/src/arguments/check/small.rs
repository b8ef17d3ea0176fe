//! Built-in validator for the JSON Schema keywords that Rust types produce.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::{Kind, Segment, Type, Violation, rule, survey::survey};

/// Maximum of schemas applied in one check, and of their depth. A schema may be untrusted and refer
/// to itself.
const MOST_STEPS: usize = 1 << 17;
const DEEPEST: usize = 1 << 9;

/// Schema with supported keywords only.
pub(in super::super) struct Validator(Value);

impl Validator {
    /// # Errors
    /// Describes the fault in the schema, or names the keyword that needs the feature
    /// `json-schema`.
    pub(in super::super) fn compile(schema: &Value) -> Result<Self, String> {
        survey(schema)?;
        Ok(Self(schema.clone()))
    }

    /// Lists the violations of the schema in the value.
    pub(in super::super) fn violations(&self, value: &Value) -> Vec<Violation> {
        Check { root: &self.0, path: Vec::new(), steps: 0, depth: 0 }.check(&self.0, value)
    }
}

/// State of one check.
struct Check<'a> {
    /// Base of references: the whole schema, or the part with an `$id` that is being applied.
    root: &'a Value,
    path: Vec<Segment>,
    steps: usize,
    depth: usize,
}

impl<'a> Check<'a> {
    fn check(&mut self, whole: &'a Value, value: &Value) -> Vec<Violation> {
        let Value::Object(schema) = whole else {
            let allows = *whole != Value::Bool(false);
            return if allows { Vec::new() } else { vec![self.broken(value, rule("is not allowed"))] };
        };
        self.steps += 1;
        if self.steps > MOST_STEPS || self.depth == DEEPEST {
            return vec![self.broken(value, rule("is too much to be checked"))];
        }
        let above = self.root;
        self.root = if schema.contains_key("$id") { whole } else { above };
        self.depth += 1;
        let mut found = self.check_value(schema, value);
        match value {
            Value::Array(items) => found.extend(self.check_items(schema, items)),
            Value::Object(fields) => found.extend(self.check_fields(schema, fields)),
            _ => {}
        }
        found.extend(self.check_others(schema, value));
        self.depth -= 1;
        self.root = above;
        found
    }

    /// Lists violations of the keywords that apply to the value itself.
    fn check_value(&self, schema: &Map<String, Value>, value: &Value) -> Vec<Violation> {
        let mut kinds = Vec::new();
        if let Some(types) = schema.get("type").map(types).filter(|types| !types.iter().any(|one| is(*one, value))) {
            kinds.push(Kind::Type(types));
        }
        if let Some(constant) = schema.get("const").filter(|constant| !same(constant, value)) {
            kinds.push(Kind::Constant(constant.clone()));
        }
        if let Some(Value::Array(values)) = schema.get("enum")
            && !values.iter().any(|one| same(one, value))
        {
            kinds.push(Kind::Enum(values.clone()));
        }
        kinds.extend(match value {
            Value::Number(n) => of_number(schema, n),
            Value::String(text) => of_size(schema, ["minLength", "maxLength"], text.chars().count(), "characters"),
            Value::Array(items) => of_size(schema, ["minItems", "maxItems"], items.len(), "items"),
            Value::Object(fields) => of_size(schema, ["minProperties", "maxProperties"], fields.len(), "fields"),
            _ => Vec::new(),
        });
        kinds.into_iter().map(|kind| self.broken(value, kind)).collect()
    }

    fn check_items(&mut self, schema: &'a Map<String, Value>, items: &[Value]) -> Vec<Violation> {
        let mut found = Vec::new();
        let first: &[Value] = schema.get("prefixItems").and_then(Value::as_array).map_or(&[], Vec::as_slice);
        for (i, item) in items.iter().enumerate() {
            if let Some(of_item) = first.get(i).or_else(|| schema.get("items")) {
                found.extend(self.check_at(Segment::Index(i), of_item, item));
            }
        }
        let twice = || items.iter().enumerate().any(|(i, item)| items[..i].iter().any(|other| same(other, item)));
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) && (items.len() > MOST_COMPARED || twice()) {
            found.push(Violation { path: self.path.clone(), got: "an array".to_owned(), kind: rule(UNIQUE) });
        }
        found
    }

    fn check_fields(&mut self, schema: &'a Map<String, Value>, fields: &Map<String, Value>) -> Vec<Violation> {
        let mut found = Vec::new();
        let named = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let mut unknown = Vec::new();
        for (name, field) in fields {
            match (named.and_then(|named| named.get(name)), others) {
                (Some(of_field), _) => found.extend(self.check_at(Segment::Name(name.clone()), of_field, field)),
                (None, Some(Value::Bool(false))) => unknown.push(name.clone()),
                (None, Some(of_field)) => found.extend(self.check_at(Segment::Name(name.clone()), of_field, field)),
                (None, None) => {}
            }
        }
        let missing = list(schema, "required").filter_map(Value::as_str).filter(|name| !fields.contains_key(*name));
        let kinds = missing.map(|name| Kind::Required(name.to_owned()));
        let kinds = kinds.chain((!unknown.is_empty()).then_some(Kind::Unknown(unknown)));
        found.extend(kinds.map(|kind| Violation { path: self.path.clone(), got: "an object".to_owned(), kind }));
        found
    }

    /// Lists violations of subschemas that apply to the same value.
    fn check_others(&mut self, schema: &'a Map<String, Value>, value: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        let target = schema.get("$ref").and_then(|target| resolve(self.root, target));
        let branch = schema.get("if").and_then(|condition| {
            let fits = self.check(condition, value).is_empty();
            schema.get(if fits { "then" } else { "else" })
        });
        for part in target.into_iter().chain(branch).chain(list(schema, "allOf")) {
            found.extend(self.check(part, value));
        }
        for (choice, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
            if !schema.contains_key(choice) {
                continue;
            }
            let branches: Vec<_> = list(schema, choice).map(|form| self.check(form, value)).collect();
            match branches.iter().filter(|branch| branch.is_empty()).count() {
                0 => found.push(self.broken(value, Kind::NoForm(branches))),
                fits if fits > most => {
                    found.push(self.broken(value, rule("fits more than one of the allowed forms")));
                }
                _ => {}
            }
        }
        if schema.get("not").is_some_and(|not| self.check(not, value).is_empty()) {
            found.push(self.broken(value, rule("is of a form that is not allowed")));
        }
        found
    }

    fn check_at(&mut self, segment: Segment, schema: &'a Value, value: &Value) -> Vec<Violation> {
        self.path.push(segment);
        let found = self.check(schema, value);
        self.path.pop();
        found
    }

    fn broken(&self, value: &Value, kind: Kind) -> Violation {
        Violation::new(self.path.clone(), value, kind)
    }
}

/// Maximum of items that are compared pairwise.
const MOST_COMPARED: usize = 1 << 12;
const UNIQUE: &str = "must not have the same item twice, nor more items than can be compared";

/// Resolves a reference within the document.
pub(super) fn resolve<'a>(root: &'a Value, target: &Value) -> Option<&'a Value> {
    root.pointer(target.as_str()?.strip_prefix('#')?)
}

/// Returns the types that a `type` keyword names.
fn types(named: &Value) -> Vec<Type> {
    let names = named.as_array().map_or(std::slice::from_ref(named), Vec::as_slice);
    let mut types: Vec<_> = names.iter().filter_map(|name| Type::named(name.as_str()?)).collect();
    types.sort_unstable_by_key(|one| *one as u8);
    types
}

fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// Returns true if the value has the type. An integer is a number too, and a number without a
/// fraction is an integer.
fn is(wanted: Type, value: &Value) -> bool {
    match (wanted, value) {
        (Type::Number, Value::Number(_)) => true,
        (Type::Integer, Value::Number(n)) => !n.is_f64() || n.as_f64().is_some_and(|float| float.fract() == 0.0),
        _ => Type::of(value) == wanted,
    }
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same_field = |(name, field): (&String, &Value)| other.get(name).is_some_and(|other| same(field, other));
            one.len() == other.len() && one.iter().all(same_field)
        }
        _ => one == other,
    }
}

fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn of_number(schema: &Map<String, Value>, n: &Number) -> Vec<Kind> {
    let broken = |keyword, words, fits: fn(Ordering) -> bool| {
        let Value::Number(limit) = schema.get(keyword)? else { return None };
        (!compare(n, limit).is_some_and(fits)).then(|| rule(format!("must be {words} {limit}")))
    };
    let broken = [
        broken("minimum", "at least", Ordering::is_ge),
        broken("maximum", "at most", Ordering::is_le),
        broken("exclusiveMinimum", "more than", Ordering::is_gt),
        broken("exclusiveMaximum", "less than", Ordering::is_lt),
    ];
    broken.into_iter().flatten().collect()
}

fn of_size(schema: &Map<String, Value>, [least, most]: [&str; 2], size: usize, what: &str) -> Vec<Kind> {
    let limit = |keyword| schema.get(keyword).and_then(Value::as_f64);
    let size = size as f64;
    let few = limit(least).filter(|limit| size < *limit).map(|limit| format!("must have {limit} or more {what}"));
    let many = limit(most).filter(|limit| size > *limit).map(|limit| format!("must have {limit} or fewer {what}"));
    few.into_iter().chain(many).map(rule).collect()
}
