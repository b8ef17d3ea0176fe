//! An engine that takes its time to store a result.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    error::Result,
    journal::{Durable, Journal, ServedEnd, ServedRun, Step, StepBody, StepResult},
    state::{Answer, Question},
};

/// Engine that waits a moment between a step's end and its stored result, like every engine that is
/// another process: steps that run side by side begin before any of them has a result.
pub struct SlowEngine(Arc<dyn Durable>);

impl SlowEngine {
    /// Slows down an engine.
    pub fn new(engine: Arc<dyn Durable>) -> Self {
        Self(engine)
    }

    fn slowly(body: StepBody<'_>) -> StepBody<'_> {
        Box::pin(async {
            let made = body.await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(made)
        })
    }
}

#[async_trait]
impl Durable for SlowEngine {
    fn attempt(&self) -> &str {
        self.0.attempt()
    }

    fn journal(&self) -> Option<Arc<dyn Journal>> {
        self.0.journal()
    }

    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        self.0.step(step, Self::slowly(body)).await
    }

    async fn child(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        self.0.child(step, Self::slowly(body)).await
    }

    async fn answer(&self, step: &Step, question: &Question) -> Result<Answer> {
        self.0.answer(step, question).await
    }

    async fn paused(&self, step: &Step) -> Result<()> {
        self.0.paused(step).await
    }

    async fn served(&self, step: &Step, run: &ServedRun) -> Result<ServedEnd> {
        self.0.served(step, run).await
    }

    async fn sleep(&self, step: &Step, time: Duration) -> Result<()> {
        self.0.sleep(step, time).await
    }
}

impl fmt::Debug for SlowEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlowEngine").field("attempt", &self.attempt()).finish_non_exhaustive()
    }
}
