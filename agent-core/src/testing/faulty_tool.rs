//! A tool with which things go wrong.

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

/// A tool that [`Faults`] decide about, and whose work [`Outside`] remembers.
///
/// The work is done when the tool's own call is: whoever is stopped after that leaves a call in doubt. To
/// [`reconcile`](Tool::reconcile) is to look outside.
#[derive(Clone, Debug)]
pub struct FaultyTool<T> {
    tool: T,
    faults: Faults,
    outside: Outside,
}

impl<T: Tool> FaultyTool<T> {
    /// `tool`, with these faults, in this world.
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
