//! A tool call made of a closure.

use std::future::ready;

use futures::future::BoxFuture;

use crate::{engine::CallBody, error::Result, run::checkpoint::Begun, state::Question, tool::ToolOutput};

/// A tool call made of a closure, for tests of a [`RunLog`](crate::engine::RunLog): without
/// allowance, and run again if it is in doubt.
#[derive(Debug)]
pub struct TestCall<F>(pub F);

impl<F, Fut> CallBody for TestCall<F>
where
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Result<ToolOutput>> + Send,
{
    fn settle(&self, _: Begun) -> BoxFuture<'_, Result<Option<ToolOutput>>> {
        Box::pin(ready(Ok(None)))
    }

    async fn allow(&self) -> Result<()> {
        Ok(())
    }

    fn count_again(&self) {}

    fn run(&self) -> impl Future<Output = Result<ToolOutput>> + Send {
        (self.0)()
    }

    fn asked(&self) -> Option<Vec<Question>> {
        Some(Vec::new())
    }
}
