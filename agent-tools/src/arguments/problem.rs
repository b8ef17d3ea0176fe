//! Puts what is wrong with arguments into words that help a model to correct them.

use std::{collections::BTreeSet, fmt};

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::LocationSegment,
};
use serde_json::Value;

/// Most problems and most choices that are told at once.
const MOST_TOLD: usize = 20;

/// Longest text of the model's that is shown to it again, in characters.
const LONGEST_QUOTE: usize = 60;

/// Problems of one value, none told twice.
pub(super) struct Problems<'a> {
    /// The names that the root takes, if it is the arguments of a tool.
    known: Option<&'a BTreeSet<String>>,
    hidden: &'a [&'a str],
    told: Vec<String>,
}

impl<'a> Problems<'a> {
    /// Problems of arguments; the values of `hidden` are not shown.
    pub(super) fn new(known: &'a BTreeSet<String>, hidden: &'a [&'a str]) -> Self {
        Self { known: Some(known), hidden, told: Vec::new() }
    }

    /// Problems of any other value.
    pub(super) fn of_value() -> Self {
        Self { known: None, hidden: &[], told: Vec::new() }
    }

    pub(super) fn add(&mut self, error: &ValidationError<'_>) {
        let place = self.place(error);
        match error.kind() {
            _ if place.is_hidden => self.tell(format!("{place} {}", reason_without_value(error, &place))),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => self.add_choice(error, context),
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                self.tell(format!("{} is required", place.field(name)));
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    match place.is_root() {
                        true => self.add_unknown(name),
                        false => self.tell(format!("{place} has an unknown field '{name}'")),
                    }
                }
            }
            _ => self.tell(format!("{place} {}{}", reason(error), got(error.instance()))),
        }
    }

    /// A parameter that the schema does not name.
    pub(super) fn add_unknown(&mut self, name: &str) {
        let known = self.known.into_iter().flatten().map(String::as_str).filter(|n| !self.hidden.contains(n));
        let known: Vec<_> = known.collect();
        let known = if known.is_empty() { "there are none".to_owned() } else { format!("known: {}", known.join(", ")) };
        self.tell(match self.known {
            Some(_) => format!("unknown parameter '{name}' ({known})"),
            None => format!("it has an unknown field '{name}'"),
        });
    }

    /// None of several forms fits. If all but one are of another type, or are for another tag, that one's problems say most.
    fn add_choice(&mut self, error: &ValidationError<'_>, branches: &[Vec<ValidationError<'static>>]) {
        let here = |e: &ValidationError<'_>| e.instance_path() == error.instance_path();
        let wrong_kind = |branch: &&Vec<ValidationError<'_>>| {
            let of_type = matches!(&branch[..], [e] if here(e) && matches!(e.kind(), Kind::Type { .. }));
            of_type || branch.iter().any(|e| matches!(e.kind(), Kind::Constant { .. }))
        };
        let near: Vec<_> = branches.iter().filter(|b| !wrong_kind(b)).collect();
        if let [branch] = near[..] {
            branch.iter().for_each(|e| self.add(e));
            return;
        }
        let simple = |branch: &Vec<ValidationError<'_>>| match &branch[..] {
            [e] if here(e) => expected(e.kind()),
            _ => None,
        };
        let place = self.place(error);
        let reason = match branches.iter().map(simple).collect::<Option<Vec<_>>>() {
            Some(choices) => format!("must be {}", either(&choices.concat())),
            None => "fits none of the allowed forms".to_owned(),
        };
        self.tell(format!("{place} {reason}{}", got(error.instance())));
    }

    fn tell(&mut self, problem: String) {
        if !self.told.contains(&problem) && self.told.len() <= MOST_TOLD {
            self.told.push(problem);
        }
    }

    fn place(&self, error: &ValidationError<'_>) -> Place {
        let segments: Vec<_> = error.instance_path().iter().collect();
        let is_hidden =
            matches!(segments.first(), Some(LocationSegment::Property(name)) if self.hidden.contains(&&**name));
        let mut path = String::new();
        for segment in segments.iter().take(if is_hidden { 1 } else { usize::MAX }) {
            match segment {
                LocationSegment::Property(name) if path.is_empty() => path.push_str(name),
                LocationSegment::Property(name) => path.extend([".", name]),
                LocationSegment::Index(i) => path.push_str(&format!("[{i}]")),
            }
        }
        Place {
            path,
            depth: segments.len(),
            is_hidden,
            root: if self.known.is_some() { "the arguments" } else { "it" },
        }
    }
}

impl fmt::Display for Problems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.told[..self.told.len().min(MOST_TOLD)];
        f.write_str(&shown.join("; "))?;
        if shown.len() < self.told.len() { f.write_str("; and more") } else { Ok(()) }
    }
}

/// Where in the arguments a problem is.
struct Place {
    path: String,
    depth: usize,
    is_hidden: bool,
    /// What the whole is called.
    root: &'static str,
}

impl Place {
    fn is_root(&self) -> bool {
        self.depth == 0
    }

    fn field(&self, name: &str) -> String {
        if self.is_root() { format!("'{name}'") } else { format!("'{}.{name}'", self.path) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str(self.root) } else { write!(f, "'{}'", self.path) }
    }
}

/// What is wrong with a value that must not be shown, nor what it is made of.
fn reason_without_value(error: &ValidationError<'_>, place: &Place) -> String {
    match expected(error.kind()) {
        Some(choices) if place.depth == 1 => format!("must be {}", either(&choices)),
        _ => "does not fit its schema".to_owned(),
    }
}

fn reason(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MinLength { limit } => format!("must have {limit} or more characters"),
        Kind::MaxLength { limit } => format!("must have {limit} or fewer characters"),
        Kind::MinItems { limit } => format!("must have {limit} or more items"),
        Kind::MaxItems { limit } => format!("must have {limit} or fewer items"),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        Kind::OneOfMultipleValid { .. } => "fits more than one of the allowed forms".to_owned(),
        kind => match expected(kind) {
            Some(choices) => format!("must be {}", either(&choices)),
            None => format!("does not fit: {}", error.masked()),
        },
    }
}

/// The values that would do, if that is a matter of type or of choice.
fn expected(kind: &Kind) -> Option<Vec<String>> {
    Some(match kind {
        Kind::Type { kind: TypeKind::Single(one) } => vec![with_article(one.as_str())],
        Kind::Type { kind: TypeKind::Multiple(many) } => many.iter().map(|t| with_article(t.as_str())).collect(),
        Kind::Constant { expected_value } => vec![expected_value.to_string()],
        Kind::Enum { options } => options.as_array()?.iter().map(Value::to_string).collect(),
        _ => return None,
    })
}

fn with_article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        "array" | "integer" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn either(choices: &[String]) -> String {
    match choices {
        [] => "something else".to_owned(),
        [one] => one.clone(),
        [first @ .., last] if choices.len() <= MOST_TOLD => format!("{} or {last}", first.join(", ")),
        many => format!("{} or another of {} choices", many[..MOST_TOLD].join(", "), many.len()),
    }
}

fn got(value: &Value) -> String {
    match value {
        Value::Array(_) => ", got an array".to_owned(),
        Value::Object(_) => ", got an object".to_owned(),
        Value::String(text) if text.chars().count() > LONGEST_QUOTE => {
            let start: String = text.chars().take(LONGEST_QUOTE).collect();
            format!(", got {} and more", Value::from(start))
        }
        other => format!(", got {other}"),
    }
}
