//! Changes of accounts, which share transactions.

use std::sync::Arc;

use agent_core::{
    Caps, Result,
    budget::{Amounts, Reserved},
};
use tokio::sync::oneshot;
use tokio_postgres::{Client, Error, Row};

use super::accounts::Statements;
use crate::{amounts::columns, postgres::query::Parameter};

/// A change of accounts, and the receiver of its result.
pub(super) enum Change {
    Reserve { accounts: Vec<(Arc<str>, Caps)>, wanted: Amounts, reply: oneshot::Sender<Result<Reserved>> },
    Settle { reservations: Vec<(Arc<str>, u64)>, used: Amounts, reply: oneshot::Sender<Result<()>> },
}

impl Change {
    /// Creates a settlement, and the receiver of its result.
    pub(super) fn settle(reservations: Vec<(Arc<str>, u64)>, used: Amounts) -> (Self, oneshot::Receiver<Result<()>>) {
        let (reply, result) = oneshot::channel();
        (Self::Settle { reservations, used, reply }, result)
    }

    pub(super) fn is_reservation(&self) -> bool {
        matches!(self, Self::Reserve { .. })
    }

    /// Returns the names of the accounts.
    pub(super) fn accounts(&self) -> Vec<&str> {
        match self {
            Self::Reserve { accounts, .. } => accounts.iter().map(|(account, _)| &**account).collect(),
            Self::Settle { reservations, .. } => reservations.iter().map(|(account, _)| &**account).collect(),
        }
    }

    /// Returns the ids of the reservations that this change ends.
    pub(super) fn settled(&self) -> impl Iterator<Item = i64> {
        let reservations = match self {
            Self::Reserve { .. } => &[][..],
            Self::Settle { reservations, .. } => reservations,
        };
        reservations.iter().map(|(_, receipt)| receipt.cast_signed())
    }

    /// Sends the statement when it is first polled, and returns its rows.
    pub(super) async fn send(&self, statements: &Statements, client: &Client, seconds: f64) -> Result<Vec<Row>, Error> {
        let names = self.accounts();
        match self {
            Self::Reserve { accounts, wanted, .. } => {
                let caps = |cap: fn(&Caps) -> Option<u64>| -> Vec<Option<i64>> {
                    let signed = |cap: u64| i64::try_from(cap).unwrap_or(i64::MAX);
                    accounts.iter().map(|(_, caps)| cap(caps).map(signed)).collect()
                };
                let (of_tokens, of_cost) = (caps(|caps| caps.tokens), caps(|caps| caps.cost));
                let (of_model_calls, of_tool_calls) = (caps(|caps| caps.model_calls), caps(|caps| caps.tool_calls));
                let [tokens, cost, model_calls, tool_calls] = columns(*wanted);
                let values: [Parameter<'_>; 10] = [
                    &names,
                    &tokens,
                    &cost,
                    &model_calls,
                    &tool_calls,
                    &seconds,
                    &of_tokens,
                    &of_cost,
                    &of_model_calls,
                    &of_tool_calls,
                ];
                statements.reserve.rows(client, &values).await
            }
            Self::Settle { used, .. } => {
                let receipts: Vec<_> = self.settled().collect();
                let [tokens, cost, model_calls, tool_calls] = columns(*used);
                let values: [Parameter<'_>; 6] = [&names, &tokens, &cost, &model_calls, &tool_calls, &receipts];
                statements.settle.rows(client, &values).await
            }
        }
    }
}
