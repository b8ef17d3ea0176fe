//! Amounts as four columns: tokens, cost, model calls and tool calls.

use agent_core::budget::Amounts;

pub(crate) fn columns(amounts: Amounts) -> [i64; 4] {
    let Amounts { tokens, cost, model_calls, tool_calls, .. } = amounts;
    [tokens, cost, model_calls, tool_calls].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// Reads amounts from four columns, starting with the first.
pub(crate) fn from_columns<E>(column: impl Fn(usize) -> Result<i64, E>) -> Result<Amounts, E> {
    let column = |at| column(at).map(|n| u64::try_from(n).unwrap_or(0));
    Ok(Amounts::none().tokens(column(0)?).cost(column(1)?).model_calls(column(2)?).tool_calls(column(3)?))
}
