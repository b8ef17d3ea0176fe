//! Resources that an agent opens before its first run and closes at the end.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use agent_core::{Model, Result, Tool, Toolset, run::ToolChoices};
use tokio::sync::Mutex;

/// The parts of an agent that are warmed up and closed.
pub(crate) struct Lifecycle {
    tools: Vec<Arc<dyn Tool>>,
    toolsets: Vec<Arc<dyn Toolset>>,
    model: Arc<dyn Model>,
    warm: AtomicBool,
    /// Held while warming up or closing; other runs wait for it.
    changing: Mutex<()>,
}

impl Lifecycle {
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>, toolsets: Vec<Arc<dyn Toolset>>, model: Arc<dyn Model>) -> Self {
        Self { tools, toolsets, model, warm: AtomicBool::new(false), changing: Mutex::new(()) }
    }

    /// Warms up the agent's own parts, once, and the tools that a run supplies.
    pub(crate) async fn before_run(&self, choices: &ToolChoices) -> Result<()> {
        self.warm_up().await?;
        if let ToolChoices::Replace(tools) | ToolChoices::Also(tools) = choices {
            for tool in tools {
                tool.warm_up().await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn warm_up(&self) -> Result<()> {
        if self.warm.load(Ordering::Acquire) {
            return Ok(());
        }
        let _changing = self.changing.lock().await;
        if self.warm.load(Ordering::Acquire) {
            return Ok(());
        }
        for tool in &self.tools {
            tool.warm_up().await?;
        }
        for toolset in &self.toolsets {
            toolset.warm_up().await?;
        }
        self.model.warm_up().await?;
        self.warm.store(true, Ordering::Release);
        Ok(())
    }

    /// Closes all parts even if some fail; returns the first error.
    pub(crate) async fn close(&self) -> Result<()> {
        let _changing = self.changing.lock().await;
        self.warm.store(false, Ordering::Release);
        let mut closed = Ok(());
        for tool in &self.tools {
            closed = closed.and(tool.close().await);
        }
        for toolset in &self.toolsets {
            closed = closed.and(toolset.close().await);
        }
        closed.and(self.model.close().await)
    }
}

impl fmt::Debug for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifecycle").field("warm", &self.warm).finish_non_exhaustive()
    }
}
