//! [`Tiers`].

use std::sync::Arc;

use agent_core::{EventKind, Result};
use async_trait::async_trait;

use super::Strategy;
use crate::{
    compaction::{Task, Unit},
    side_call::ends_the_run,
};

/// Cascade of strategies: applies one after the other, the gentle ones first, until the
/// conversation is as small as the target.
///
/// A strategy that fails is reported and skipped, and the next one is tried.
#[derive(Clone, Debug, Default)]
pub struct Tiers(Vec<Arc<dyn Strategy>>);

impl Tiers {
    /// Creates a cascade without strategies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a strategy that is applied if the earlier ones were not sufficient.
    #[must_use]
    pub fn then(mut self, strategy: impl Strategy) -> Self {
        self.0.push(Arc::new(strategy));
        self
    }
}

#[async_trait]
impl Strategy for Tiers {
    fn name(&self) -> &str {
        "tiers"
    }

    fn needs_archive(&self) -> bool {
        self.0.iter().any(Strategy::needs_archive)
    }

    async fn compact(&self, task: &Task<'_>, units: Vec<Unit>) -> Result<Vec<Unit>> {
        let (mut best, mut tokens, mut failure, mut worked) =
            (units.clone(), task.total(&units), None, self.0.is_empty());
        for tier in &self.0 {
            match tier.compact(task, best.clone()).await {
                Ok(smaller) => {
                    worked = true;
                    let now = task.total(&smaller);
                    if now < tokens {
                        (best, tokens) = (smaller, now);
                    }
                }
                Err(e) if ends_the_run(e.kind()) => return Err(e),
                Err(e) => {
                    let message = format!("compaction: '{}' failed, the next is tried: {e}", tier.name());
                    task.cx().emit(EventKind::Warning { message });
                    failure = Some(e);
                }
            }
            if tokens <= task.target() {
                break;
            }
        }
        match failure {
            Some(e) if !worked => Err(e),
            _ => Ok(best),
        }
    }
}
