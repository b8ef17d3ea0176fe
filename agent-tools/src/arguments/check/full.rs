//! Full JSON Schema validation, with the crate `jsonschema`.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind},
    paths::{Location, LocationSegment},
};
use serde_json::Value;

use super::{Kind, Segment, Type, Violation, rule};

/// Compiled schema.
pub(in super::super) struct Validator(jsonschema::Validator);

impl Validator {
    /// # Errors
    /// Describes the fault in the schema. References to other documents are not fetched, hence
    /// invalid.
    pub(in super::super) fn compile(schema: &Value) -> Result<Self, String> {
        let compiled = jsonschema::options().offline().build(schema).map_err(|e| {
            let place = e.instance_path().as_str();
            if place.is_empty() { e.to_string() } else { format!("{e} (at {place})") }
        });
        compiled.map(Self)
    }

    /// Lists the violations of the schema in the value.
    pub(in super::super) fn violations(&self, value: &Value) -> Vec<Violation> {
        if self.0.is_valid(value) { Vec::new() } else { self.0.iter_errors(value).map(|e| violation(&e)).collect() }
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    Violation::new(path(error.instance_path()), error.instance(), kind(error))
}

fn path(location: &Location) -> Vec<Segment> {
    let segment = |segment| match segment {
        LocationSegment::Property(name) => Segment::Name(name.into_owned()),
        LocationSegment::Index(i) => Segment::Index(i),
    };
    location.iter().map(segment).collect()
}

fn kind(error: &ValidationError<'_>) -> Kind {
    use ValidationErrorKind as Theirs;
    match error.kind() {
        Theirs::Type { kind: TypeKind::Single(one) } => Kind::Type(Type::named(one.as_str()).into_iter().collect()),
        Theirs::Type { kind: TypeKind::Multiple(many) } => {
            Kind::Type(many.iter().filter_map(|one| Type::named(one.as_str())).collect())
        }
        Theirs::Constant { expected_value } => Kind::Constant(Value::clone(expected_value)),
        Theirs::Enum { options } => Kind::Enum(options.as_array().cloned().unwrap_or_default()),
        Theirs::Required { property } => Kind::Required(property.as_str().unwrap_or_default().to_owned()),
        Theirs::AdditionalProperties { unexpected } | Theirs::UnevaluatedProperties { unexpected } => {
            Kind::Unknown(unexpected.clone())
        }
        Theirs::AnyOf { context } | Theirs::OneOfNotValid { context } => {
            Kind::NoForm(context.iter().map(|branch| branch.iter().map(violation).collect()).collect())
        }
        Theirs::Minimum { limit } => rule(format!("must be at least {limit}")),
        Theirs::Maximum { limit } => rule(format!("must be at most {limit}")),
        Theirs::ExclusiveMinimum { limit } => rule(format!("must be more than {limit}")),
        Theirs::ExclusiveMaximum { limit } => rule(format!("must be less than {limit}")),
        Theirs::MinLength { limit } => rule(format!("must have {limit} or more characters")),
        Theirs::MaxLength { limit } => rule(format!("must have {limit} or fewer characters")),
        Theirs::MinItems { limit } => rule(format!("must have {limit} or more items")),
        Theirs::MaxItems { limit } => rule(format!("must have {limit} or fewer items")),
        Theirs::UniqueItems => rule("must not have the same item twice"),
        Theirs::Pattern { pattern } => rule(format!("must match the pattern {pattern}")),
        Theirs::OneOfMultipleValid { .. } => rule("fits more than one of the allowed forms"),
        _ => rule(format!("does not fit: {}", error.masked())),
    }
}
