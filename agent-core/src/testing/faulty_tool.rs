//! A tool with injected faults.

use async_trait::async_trait;

use super::{
    Fault, Faults, Outside,
    faults::{slow, stall},
};
use crate::{
    error::{Error, Result},
    tool::{Tool, ToolRequest},
    tooling::{Reconciled, ToolOptions, ToolOutput, ToolSpec},
};

const FAULTS: [Fault; 5] = [Fault::Slow, Fault::Stall, Fault::Fails, Fault::FailsAfter, Fault::SlowAfter];

/// A tool with injected [`Faults`], whose effects [`Outside`] records.
///
/// The effect happens when the inner tool's call completes: a crash after that leaves the call in
/// doubt. [`reconcile`](Tool::reconcile) looks the effect up.
#[derive(Clone, Debug)]
pub struct FaultyTool<T> {
    tool: T,
    faults: Faults,
    outside: Outside,
}

impl<T: Tool> FaultyTool<T> {
    /// Creates a tool that delegates to `tool`, with these faults and this record of effects.
    pub fn new(tool: T, faults: Faults, outside: Outside) -> Self {
        Self { tool, faults, outside }
    }
}

#[async_trait]
impl<T: Tool> Tool for FaultyTool<T> {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    fn options(&self) -> ToolOptions {
        self.tool.options()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        self.faults.shuffle().await;
        let fault = self.faults.draw(&FAULTS);
        match fault {
            Some(Fault::Slow) => slow().await,
            Some(Fault::Stall) => {
                stall().await;
                return Err(Error::tool("the server did not answer"));
            }
            Some(Fault::Fails) => return Err(Error::tool("it could not be done")),
            _ => {}
        }
        let key = req.idempotency_key();
        let output = self.tool.call(req).await?;
        self.outside.happened(&key, self.tool.options().effect, &output);
        match fault {
            Some(Fault::SlowAfter) => slow().await,
            Some(Fault::FailsAfter) => return Err(Error::tool("it was done, and the answer was lost")),
            _ => self.faults.shuffle().await,
        }
        Ok(output)
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        self.faults.shuffle().await;
        Ok(self.outside.output(&req.idempotency_key()).map_or(Reconciled::DidNot, Reconciled::Happened))
    }
}
