//! Values in the source of a Python program, parsed and not executed. The API uses types of the
//! parser, so it is for the crates of this workspace only.

use ruff_python_ast::{Expr, Number, UnaryOp};
use serde_json::{Map, Value};

/// Evaluates a constant expression: a literal, or lists, tuples and dictionaries of such. `named`
/// resolves names.
///
/// # Errors
/// The subexpression that is not constant.
pub fn value<'a>(expr: &'a Expr, named: &mut impl FnMut(&str) -> Option<Value>) -> Result<Value, &'a Expr> {
    match expr {
        Expr::NoneLiteral(_) => Ok(Value::Null),
        Expr::BooleanLiteral(literal) => Ok(literal.value.into()),
        Expr::StringLiteral(literal) => Ok(literal.value.to_str().into()),
        Expr::NumberLiteral(literal) => match &literal.value {
            Number::Int(number) => number.as_i64().map(Value::from).or_else(|| number.as_u64().map(Value::from)),
            Number::Float(number) => serde_json::Number::from_f64(*number).map(Value::Number),
            Number::Complex { .. } => None,
        }
        .ok_or(expr),
        Expr::UnaryOp(signed) if matches!(signed.op, UnaryOp::USub | UnaryOp::UAdd) => {
            let Value::Number(number) = value(&signed.operand, named)? else { return Err(expr) };
            let number = match (signed.op, number.as_i128()) {
                (UnaryOp::UAdd, _) => Some(number),
                (_, Some(whole)) => serde_json::Number::from_i128(-whole),
                (_, None) => number.as_f64().and_then(|number| serde_json::Number::from_f64(-number)),
            };
            number.map(Value::Number).ok_or(expr)
        }
        Expr::List(list) => list.elts.iter().map(|item| value(item, named)).collect::<Result<_, _>>().map(Value::Array),
        Expr::Tuple(tuple) => {
            tuple.elts.iter().map(|item| value(item, named)).collect::<Result<_, _>>().map(Value::Array)
        }
        Expr::Dict(dict) => {
            let fields = dict.items.iter().map(|item| match item.key.as_ref() {
                Some(Expr::StringLiteral(key)) => Ok((key.value.to_str().to_owned(), value(&item.value, named)?)),
                other => Err(other.unwrap_or(&item.value)),
            });
            fields.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        Expr::Name(name) => named(&name.id).ok_or(expr),
        _ => Err(expr),
    }
}
