//! Filters on metadata.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A condition on metadata.
///
/// ```
/// use agent_retrieval::memory::Filter;
/// use serde_json::json;
///
/// let filter = Filter::eq("topic", "food").and(Filter::not(Filter::lt("year", 2020)));
/// let metadata = |value: serde_json::Value| value.as_object().cloned().expect("an object");
/// assert!(filter.matches(&metadata(json!({"topic": "food", "year": 2024}))));
/// assert!(!filter.matches(&metadata(json!({"topic": "food", "year": 1999}))));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Filter {
    /// Comparison of a field with a value.
    Field {
        /// The field's name.
        field: String,
        /// Comparison operator.
        is: Comparison,
        /// The value.
        value: Value,
    },
    /// Conjunction; true if empty.
    And(Vec<Self>),
    /// Disjunction; false if empty.
    Or(Vec<Self>),
    /// Negation.
    Not(Box<Self>),
}

/// Comparison operator. A missing field is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Comparison {
    /// Equal; numbers are compared by value, so 1 equals 1.0.
    #[serde(rename = "==")]
    Equal,
    /// Not equal.
    #[serde(rename = "!=")]
    NotEqual,
    /// The field is greater. Only numbers and texts are ordered: any other comparison is false.
    #[serde(rename = ">")]
    Greater,
    /// The field is greater or equal.
    #[serde(rename = ">=")]
    GreaterOrEqual,
    /// The field is less.
    #[serde(rename = "<")]
    Less,
    /// The field is less or equal.
    #[serde(rename = "<=")]
    LessOrEqual,
    /// The field equals a value of a list.
    #[serde(rename = "in")]
    In,
    /// The field equals no value of a list.
    #[serde(rename = "not in")]
    NotIn,
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident => $is:ident,)*) => {$(
        $(#[$doc])*
        pub fn $name(field: impl Into<String>, value: impl Into<Value>) -> Self {
            Self::Field { field: field.into(), is: Comparison::$is, value: value.into() }
        }
    )*};
}

impl Filter {
    comparisons! {
        /// The field is equal.
        eq => Equal,
        /// The field is not equal.
        ne => NotEqual,
        /// The field is greater.
        gt => Greater,
        /// The field is greater or equal.
        ge => GreaterOrEqual,
        /// The field is less.
        lt => Less,
        /// The field is less or equal.
        le => LessOrEqual,
        /// The field equals a value of a list.
        is_in => In,
        /// The field equals no value of a list.
        not_in => NotIn,
    }

    /// Conjunction with another filter.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::And(vec![self, other])
    }

    /// Disjunction with another filter.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::Or(vec![self, other])
    }

    /// Negation of `filter`.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "a constructor, as the others")]
    pub fn not(filter: Self) -> Self {
        Self::Not(Box::new(filter))
    }

    /// True if the metadata match the filter.
    pub fn matches(&self, metadata: &Map<String, Value>) -> bool {
        match self {
            Self::Field { field, is, value } => is.holds(metadata.get(field).unwrap_or(&Value::Null), value),
            Self::And(all) => all.iter().all(|filter| filter.matches(metadata)),
            Self::Or(any) => any.iter().any(|filter| filter.matches(metadata)),
            Self::Not(filter) => !filter.matches(metadata),
        }
    }
}

impl Comparison {
    fn holds(self, field: &Value, value: &Value) -> bool {
        let order = || match (field, value) {
            (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            _ => None,
        };
        match self {
            Self::Equal => equal(field, value),
            Self::NotEqual => !equal(field, value),
            Self::Greater => order().is_some_and(std::cmp::Ordering::is_gt),
            Self::GreaterOrEqual => order().is_some_and(std::cmp::Ordering::is_ge),
            Self::Less => order().is_some_and(std::cmp::Ordering::is_lt),
            Self::LessOrEqual => order().is_some_and(std::cmp::Ordering::is_le),
            Self::In => is_among(field, value),
            Self::NotIn => !is_among(field, value),
        }
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        _ => a == b,
    }
}

fn is_among(field: &Value, values: &Value) -> bool {
    values.as_array().is_some_and(|values| values.iter().any(|value| equal(field, value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(filter: &Filter) -> bool {
        let metadata = json!({"n": 3, "s": "b", "l": [1], "b": true});
        filter.matches(metadata.as_object().expect("an object"))
    }

    #[test]
    fn each_comparison_says_what_its_sign_says() {
        assert!(holds(&Filter::eq("n", 3.0)) && !holds(&Filter::eq("n", 4)) && holds(&Filter::eq("l", json!([1]))));
        assert!(holds(&Filter::ne("n", 4)) && holds(&Filter::ne("nothing", 4)) && !holds(&Filter::ne("b", true)));
        assert!(holds(&Filter::gt("n", 2.5)) && !holds(&Filter::gt("n", 3)) && holds(&Filter::ge("n", 3)));
        assert!(holds(&Filter::lt("s", "c")) && !holds(&Filter::lt("s", "b")) && holds(&Filter::le("s", "b")));
        assert!(holds(&Filter::is_in("n", json!([1, 3.0]))) && !holds(&Filter::is_in("n", json!([]))));
        assert!(holds(&Filter::not_in("n", json!([1]))) && !holds(&Filter::not_in("n", json!([3]))));
    }

    #[test]
    fn what_has_no_order_is_neither_greater_nor_less() {
        for field in ["s", "l", "b", "nothing"] {
            for filter in [Filter::gt(field, 1), Filter::le(field, 1), Filter::lt(field, json!(null))] {
                assert!(!holds(&filter), "{filter:?}");
            }
        }
    }

    #[test]
    fn filters_combine_and_survive_as_json() {
        let filter = Filter::eq("n", 3).and(Filter::not(Filter::eq("s", "a")).or(Filter::Or(vec![])));
        assert!(holds(&filter) && !holds(&Filter::not(filter.clone())));
        assert!(holds(&Filter::And(vec![])) && !holds(&Filter::Or(vec![])));
        let text = serde_json::to_string(&filter).expect("serialises");
        assert_eq!(serde_json::from_str::<Filter>(&text).expect("parses"), filter);
    }
}
