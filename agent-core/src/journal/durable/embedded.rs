//! The engine of runs that go on from their journal.

use async_trait::async_trait;

use super::{Durable, Step, StepBody, StepResult};
use crate::error::Result;

/// The engine of runs that go on from their journal: it runs every body and keeps nothing, since the run notes what its steps
/// gave in the journal, and what an earlier attempt noted never comes to an engine.
#[derive(Debug, Default)]
pub struct Embedded(());

#[async_trait]
impl Durable for Embedded {
    fn attempt(&self) -> &str {
        "" // nothing is kept by which anybody could tell attempts apart
    }

    async fn step(&self, _: &Step, body: StepBody<'_>) -> Result<StepResult> {
        body.await
    }
}
