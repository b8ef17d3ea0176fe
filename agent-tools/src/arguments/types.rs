//! JSON types.

use serde_json::Value;

/// JSON type, in the sense of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Array,
    Boolean,
    Integer,
    Null,
    Number,
    Object,
    String,
}

impl Type {
    const ALL: [Self; 7] =
        [Self::Array, Self::Boolean, Self::Integer, Self::Null, Self::Number, Self::Object, Self::String];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Null => "null",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns the narrowest type of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(n) if n.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

/// Set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const ANY: Self = Self(0b111_1111);

    pub(super) fn contains(self, one: Type) -> bool {
        self.0 & Self::from(one).0 != 0
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn intersect(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn without(self, one: Type) -> Self {
        Self(self.0 & !Self::from(one).0)
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Iterates over the types in alphabetical order.
    pub(super) fn iter(self) -> impl Iterator<Item = Type> {
        Type::ALL.into_iter().filter(move |one| self.contains(*one))
    }
}

impl From<Type> for Types {
    fn from(one: Type) -> Self {
        Self(1 << one as u8)
    }
}
