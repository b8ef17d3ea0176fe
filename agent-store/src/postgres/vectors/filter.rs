//! Translation of filters to SQL.

use agent_retrieval::memory::{Comparison, Filter};
use serde_json::Value;
use tokio_postgres::types::Type;

use crate::postgres::query::Parameter;

/// SQL condition on a record's metadata, equivalent to a filter, with its parameters.
pub(super) struct Condition {
    pub(super) sql: String,
    values: Vec<String>,
    /// Number of its first parameter.
    first: usize,
}

impl Condition {
    /// Translates a filter into a condition whose parameters are numbered from `first` on.
    pub(super) fn new(filter: Option<&Filter>, first: usize) -> Self {
        let mut condition = Self { sql: String::new(), values: Vec::new(), first };
        condition.sql = filter.map_or_else(|| "true".to_owned(), |filter| condition.of(filter));
        condition
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = (Parameter<'_>, Type)> {
        self.values.iter().map(|value| (value as Parameter<'_>, Type::TEXT))
    }

    /// Adds a value as a parameter.
    fn value(&mut self, value: impl Into<String>) -> String {
        self.values.push(value.into());
        format!("${}", self.first + self.values.len() - 1)
    }

    fn of(&mut self, filter: &Filter) -> String {
        match filter {
            Filter::Field { field, is, value } => self.field(field, *is, value),
            Filter::And(all) => self.joined(all, " AND ", "true"),
            Filter::Or(any) => self.joined(any, " OR ", "false"),
            Filter::Not(filter) => format!("NOT {}", self.of(filter)),
            // A filter kind that this release does not know.
            _ => "false".to_owned(),
        }
    }

    fn joined(&mut self, filters: &[Filter], by: &str, none: &str) -> String {
        match filters {
            [] => none.to_owned(),
            some => format!("({})", some.iter().map(|filter| self.of(filter)).collect::<Vec<_>>().join(by)),
        }
    }

    fn field(&mut self, field: &str, is: Comparison, value: &Value) -> String {
        let field = self.value(field);
        match is {
            Comparison::Equal => self.equal(&field, value),
            Comparison::NotEqual => format!("NOT {}", self.equal(&field, value)),
            Comparison::Greater => self.order(&field, ">", value),
            Comparison::GreaterOrEqual => self.order(&field, ">=", value),
            Comparison::Less => self.order(&field, "<", value),
            Comparison::LessOrEqual => self.order(&field, "<=", value),
            Comparison::In => self.among(&field, value),
            Comparison::NotIn => format!("NOT {}", self.among(&field, value)),
            // A comparison that this release does not know. Refers to the field, since unused
            // parameters are rejected.
            _ => format!("({field} IS NULL)"),
        }
    }

    /// Compares numbers by value; a missing field equals null.
    fn equal(&mut self, field: &str, value: &Value) -> String {
        match value {
            Value::Number(_) => self.order(field, "=", value),
            _ => {
                let value = self.value(value.to_string());
                format!("(coalesce(metadata -> {field}, 'null') = {value}::jsonb)")
            }
        }
    }

    fn among(&mut self, field: &str, values: &Value) -> String {
        match values.as_array().map(Vec::as_slice) {
            None | Some([]) => {
                // Refers to the field, since unused parameters are rejected.
                format!("({field} IS NULL)")
            }
            Some(values) => {
                let any: Vec<_> = values.iter().map(|value| self.equal(field, value)).collect();
                format!("({})", any.join(" OR "))
            }
        }
    }

    /// Compares numbers or texts only: `CASE`, since the operands of `AND` are evaluated in any
    /// order.
    fn order(&mut self, field: &str, sign: &str, value: &Value) -> String {
        let (kind, compared) = match value {
            Value::Number(number) => {
                let value = self.value(number.to_string());
                ("number", format!("(metadata -> {field})::float8 {sign} {value}::float8"))
            }
            Value::String(text) => {
                let value = self.value(text.as_str());
                ("string", format!("(metadata ->> {field}) COLLATE \"C\" {sign} {value}"))
            }
            _ => return format!("({field} IS NULL)"),
        };
        format!("CASE WHEN jsonb_typeof(metadata -> {field}) = '{kind}' THEN {compared} ELSE false END")
    }
}
