//! Error messages about invalid arguments, worded so that a model can correct them.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::check::{Kind, Segment, Violation};
use super::types::Type;

/// Maximum of problems, and of choices, in one message.
const MOST_TOLD: usize = 20;

/// Problems of one value, without duplicates.
pub(super) struct Problems<'a> {
    /// Parameter names, if the root is the arguments of a tool.
    known: Option<&'a BTreeSet<String>>,
    hidden: &'a [&'a str],
    told: Vec<String>,
}

impl<'a> Problems<'a> {
    /// Creates a list of problems of arguments; the values of `hidden` are not shown.
    pub(super) fn new(known: &'a BTreeSet<String>, hidden: &'a [&'a str]) -> Self {
        Self { known: Some(known), hidden, told: Vec::new() }
    }

    /// Creates a list of problems of any other value.
    pub(super) fn of_value() -> Self {
        Self { known: None, hidden: &[], told: Vec::new() }
    }

    pub(super) fn add(&mut self, violation: &Violation) {
        let place = self.place(violation);
        match &violation.kind {
            kind if place.is_hidden => self.tell(format!("{place} {}", reason_without_value(kind, &place))),
            Kind::NoForm(branches) => self.add_choice(violation, branches),
            Kind::Required(name) => self.tell(format!("{} is required", place.field(name))),
            Kind::Unknown(names) => {
                for name in names {
                    match place.is_root() {
                        true => self.add_unknown(name),
                        false => self.tell(format!("{place} has an unknown field '{name}'")),
                    }
                }
            }
            kind => self.tell(format!("{place} {}, got {}", reason(kind), violation.got)),
        }
    }

    /// Adds the problem of a parameter that the schema does not name.
    pub(super) fn add_unknown(&mut self, name: &str) {
        let known = self.known.into_iter().flatten().map(String::as_str).filter(|n| !self.hidden.contains(n));
        let known: Vec<_> = known.collect();
        let known = if known.is_empty() { "there are none".to_owned() } else { format!("known: {}", known.join(", ")) };
        self.tell(match self.known {
            Some(_) => format!("unknown parameter '{name}' ({known})"),
            None => format!("it has an unknown field '{name}'"),
        });
    }

    /// Adds the problem of a value that matches none of several alternatives. If all alternatives
    /// but one have another type or another tag, the problems of that one are the most helpful.
    fn add_choice(&mut self, violation: &Violation, branches: &[Vec<Violation>]) {
        let here = |one: &Violation| one.path == violation.path;
        let wrong_kind = |branch: &&Vec<Violation>| {
            let of_type = matches!(&branch[..], [one] if here(one) && matches!(one.kind, Kind::Type(_)));
            of_type || branch.iter().any(|one| matches!(one.kind, Kind::Constant(_)))
        };
        let near: Vec<_> = branches.iter().filter(|b| !wrong_kind(b)).collect();
        if let [branch] = near[..] {
            branch.iter().for_each(|one| self.add(one));
            return;
        }
        let simple = |branch: &Vec<Violation>| match &branch[..] {
            [one] if here(one) => expected(&one.kind),
            _ => None,
        };
        let place = self.place(violation);
        let reason = match branches.iter().map(simple).collect::<Option<Vec<_>>>() {
            Some(choices) => format!("must be {}", either(&choices.concat())),
            None => "fits none of the allowed forms".to_owned(),
        };
        self.tell(format!("{place} {reason}, got {}", violation.got));
    }

    fn tell(&mut self, problem: String) {
        if !self.told.contains(&problem) && self.told.len() <= MOST_TOLD {
            self.told.push(problem);
        }
    }

    fn place(&self, violation: &Violation) -> Place {
        let segments = &violation.path;
        let is_hidden = matches!(segments.first(), Some(Segment::Name(name)) if self.hidden.contains(&&**name));
        let mut path = String::new();
        for segment in segments.iter().take(if is_hidden { 1 } else { usize::MAX }) {
            match segment {
                Segment::Name(name) if path.is_empty() => path.push_str(name),
                Segment::Name(name) => path.extend([".", name]),
                Segment::Index(i) => path.push_str(&format!("[{i}]")),
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

/// Location of a problem in the arguments.
struct Place {
    path: String,
    depth: usize,
    is_hidden: bool,
    /// Name of the root.
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

/// Describes the problem of a hidden value, without the value or its parts.
fn reason_without_value(kind: &Kind, place: &Place) -> String {
    match expected(kind) {
        Some(choices) if place.depth == 1 => format!("must be {}", either(&choices)),
        _ => "does not fit its schema".to_owned(),
    }
}

fn reason(kind: &Kind) -> String {
    match (kind, expected(kind)) {
        (_, Some(choices)) => format!("must be {}", either(&choices)),
        (Kind::Rule(rule), None) => rule.clone(),
        _ => "does not fit its schema".to_owned(),
    }
}

/// Lists the valid values, if the problem is one of type or of choice.
fn expected(kind: &Kind) -> Option<Vec<String>> {
    Some(match kind {
        Kind::Type(types) => types.iter().map(|one| with_article(*one)).collect(),
        Kind::Constant(value) => vec![value.to_string()],
        Kind::Enum(values) => values.iter().map(Value::to_string).collect(),
        Kind::Required(_) | Kind::Unknown(_) | Kind::NoForm(_) | Kind::Rule(_) => return None,
    })
}

fn with_article(one: Type) -> String {
    match one {
        Type::Null => "null".to_owned(),
        Type::Array | Type::Integer | Type::Object => format!("an {}", one.name()),
        Type::Boolean | Type::Number | Type::String => format!("a {}", one.name()),
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
