//! Strategies made from functions.

use std::fmt;

use agent_core::Result;
use async_trait::async_trait;

use super::Strategy;
use crate::compaction::{Task, Unit};

/// A strategy made from a function by [`strategy_fn`].
pub struct Custom<F> {
    name: &'static str,
    compact: F,
}

/// Creates a strategy from a function.
///
/// ```
/// use agent_middleware::{ContextCompaction, compaction::strategy_fn};
///
/// let newest = strategy_fn("newest", |_, mut units| {
///     let from = units.len().saturating_sub(10);
///     Ok(units.split_off(from))
/// });
/// let compaction = ContextCompaction::builder().strategy(newest).build()?;
/// # drop(compaction);
/// # Ok::<(), agent_core::Error>(())
/// ```
pub fn strategy_fn<F>(name: &'static str, compact: F) -> Custom<F>
where
    F: Fn(&Task<'_>, Vec<Unit>) -> Result<Vec<Unit>> + Send + Sync + 'static,
{
    Custom { name, compact }
}

#[async_trait]
impl<F> Strategy for Custom<F>
where
    F: Fn(&Task<'_>, Vec<Unit>) -> Result<Vec<Unit>> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        self.name
    }

    async fn compact(&self, task: &Task<'_>, units: Vec<Unit>) -> Result<Vec<Unit>> {
        (self.compact)(task, units)
    }
}

impl<F> fmt::Debug for Custom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Custom").field(&self.name).finish()
    }
}
