//! Compaction strategies.

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

/// Compaction strategy: shrinks a conversation.
///
/// It receives the conversation in [`Unit`]s and returns units in the same order. It may remove,
/// edit and insert units, and a call can never be separated from its results. The result is used
/// only if it is smaller.
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
    /// Returns the name used in events.
    fn name(&self) -> &str;

    /// True if removed content is lost without an archive: an archive must then be configured.
    fn needs_archive(&self) -> bool {
        false
    }

    /// Returns the conversation in smaller form, or unchanged if there is nothing to do.
    ///
    /// # Errors
    /// On an error, the conversation stays unchanged, the failure is reported, and the run
    /// continues, unless the error ends the run itself.
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
