//! Tools of an agent, including those of its servers, as its model sees them.

use std::sync::{Arc, Mutex, PoisonError};

use agent::{
    Agent, Model, ModelRequest, ModelResponse, Result, RunCx, RunRequest, Tool, async_trait,
    core::ModelInfo,
    tool::{ToolSpec, Toolset},
};

/// The tools of a set, its server started or reached.
///
/// # Errors
/// Errors of the set.
pub(crate) async fn of_toolset(tools: &Arc<dyn Toolset>) -> Result<Vec<ToolSpec>> {
    let listener = Listener::default();
    let agent = Agent::builder("listing", listener.clone()).toolset(Shared(tools.clone())).build()?;
    let listed = agent.start(RunRequest::user("What tools are there?")).await;
    agent.close().await?;
    listed?;
    let told = listener.told.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(told.clone())
}

/// All tools of an agent, its own first.
///
/// # Errors
/// Errors of a set of tools.
pub(crate) async fn of_agent(agent: &Agent) -> Result<Vec<ToolSpec>> {
    let mut all = agent.tools().to_vec();
    for tools in agent.toolsets() {
        all.extend(of_toolset(tools).await?);
    }
    Ok(all)
}

/// In the place of a model: hears what tools there are, and says nothing.
#[derive(Clone, Default)]
struct Listener {
    told: Arc<Mutex<Vec<ToolSpec>>>,
}

#[async_trait]
impl Model for Listener {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("a list of tools")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = req.tools.to_vec();
        Ok(ModelResponse::new("."))
    }
}

struct Shared(Arc<dyn Toolset>);

#[async_trait]
impl Toolset for Shared {
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        self.0.tools(cx).await
    }

    async fn warm_up(&self) -> Result<()> {
        self.0.warm_up().await
    }

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }
}
