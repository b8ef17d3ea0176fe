//! How a conversation is made smaller.

mod cache_aware;
mod clamp;
mod clear;
mod custom;
mod dedup;
mod offload;
mod summary;
mod tiers;
mod window;

use std::{fmt, sync::Arc};

use agent_core::Result;
use async_trait::async_trait;

pub use self::{
    cache_aware::{CacheAware, CachePrices},
    clamp::ClampMessages,
    clear::ClearToolResults,
    custom::{Custom, strategy_fn},
    dedup::DedupReads,
    offload::OffloadToolResults,
    summary::Summary,
    tiers::Tiers,
    window::SlidingWindow,
};
use super::{Task, Unit};

/// A way to make a conversation smaller.
///
/// It is given the conversation in [`Unit`]s and gives back others, in the same order: what it removes, edits or puts in is
/// its own affair, and a call can never be parted from its results. What it gives back is only taken if it is smaller.
///
/// ```
/// use agent_core::{Result, async_trait};
/// use agent_middleware::compaction::{Keep, Strategy, Task, Unit};
///
/// /// Forgets everything but the last round.
/// struct Forgetful;
///
/// #[async_trait]
/// impl Strategy for Forgetful {
///     fn name(&self) -> &str {
///         "forgetful"
///     }
///
///     async fn compact(&self, task: &Task<'_>, mut units: Vec<Unit>) -> Result<Vec<Unit>> {
///         Ok(units.split_off(task.recent(Keep::UserRounds(1), &units)))
///     }
/// }
/// ```
#[async_trait]
pub trait Strategy: Send + Sync + 'static {
    /// Names it in events.
    fn name(&self) -> &str;

    /// True if what it removes is lost without an archive: then one must be set.
    fn needs_archive(&self) -> bool {
        false
    }

    /// Gives the conversation back smaller, or as it is if there is nothing to do.
    ///
    /// # Errors
    /// The conversation then stays as it is, the failure is reported, and the run goes on; unless the run itself is to end.
    async fn compact(&self, task: &Task<'_>, units: Vec<Unit>) -> Result<Vec<Unit>>;
}

#[async_trait]
impl<S: Strategy + ?Sized> Strategy for Arc<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn needs_archive(&self) -> bool {
        (**self).needs_archive()
    }

    async fn compact(&self, task: &Task<'_>, units: Vec<Unit>) -> Result<Vec<Unit>> {
        (**self).compact(task, units).await
    }
}

impl fmt::Debug for dyn Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
