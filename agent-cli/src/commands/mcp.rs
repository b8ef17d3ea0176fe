//! `agent mcp`.

use std::sync::Arc;

use agent::{
    Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, async_trait,
    core::run::SubAgent,
    middleware::{Permissions, permissions::Policy},
    tool::{Reconciled, ToolSpec},
    tools::{ToolSet, mcp::Server},
};
use serde_json::json;

use crate::{
    cli::{Global, Mcp},
    load::{NO_MODEL, load},
    output::{End, announce},
};

/// Serves the agent, or its tools, until the client goes away or somebody interrupts it.
pub(crate) async fn mcp(wanted: Mcp, global: &Global) -> Result<End> {
    if wanted.tools && !global.allow_tool.is_empty() {
        return Err(Error::config("--allow-tool has no effect with --tools: the client approves calls; remove it"));
    }
    // Tools are served without a model.
    let model = global.model.clone().or_else(|| wanted.tools.then(|| NO_MODEL.into()));
    let file = wanted.agent_file.or_else(|| global.file.clone());
    let global = &Global { model, file, ..global.clone() };
    let loaded = load(global).await?;
    let agent = loaded.build()?;
    let mut server = Server::builder(agent.name()).version(env!("CARGO_PKG_VERSION"));
    if wanted.tools {
        let tools = allowed(agent.shared_tools(), loaded.permissions);
        if tools.is_empty() {
            return Err(Error::config("the agent has no tools to serve; --dir gives it those for files"));
        }
        server = server.tools(tools.into_iter().fold(ToolSet::new("tools"), ToolSet::shared));
    } else {
        let about = loaded.description.as_deref().or(global.system.as_deref()).unwrap_or("Answers questions.");
        server = server.agent(SubAgent::new(agent.name(), about, agent.clone()));
    }
    let Some(address) = wanted.http else {
        server.build()?.serve_stdio().await?;
        return Ok(End::Finished);
    };
    if let Ok(token) = std::env::var("AGENT_MCP_TOKEN") {
        server = server.bearer(token);
    }
    let serving = Arc::new(server.build()?.serve_http(address).await?);
    let address = format!("http://{}", serving.address());
    announce(global, &address, &format!("serving at {address}; Ctrl-C ends it"))?;
    agent::shutdown_signal().await.map_err(|e| crate::output::cannot("signals", e))?;
    Ok(End::Finished)
}

/// The tools without those that are denied; of the others, calls that are denied fail. To ask is the client's part.
fn allowed(tools: &[Arc<dyn Tool>], permissions: Option<Permissions>) -> Vec<Arc<dyn Tool>> {
    let Some(permissions) = permissions.map(Arc::new) else { return tools.to_vec() };
    let is_served = |tool: &&Arc<dyn Tool>| permissions.decide(&tool.spec().name, &json!({})).policy != Policy::Deny;
    let guarded = |tool: &Arc<dyn Tool>| {
        Arc::new(Guarded { tool: tool.clone(), permissions: permissions.clone() }) as Arc<dyn Tool>
    };
    tools.iter().filter(is_served).map(guarded).collect()
}

/// A tool whose calls are refused that are denied.
struct Guarded {
    tool: Arc<dyn Tool>,
    permissions: Arc<Permissions>,
}

impl Guarded {
    fn check(&self, req: &ToolRequest) -> Result<()> {
        let ruling = self.permissions.decide(&self.tool.spec().name, &req.args);
        match ruling.policy {
            Policy::Deny => {
                Err(Error::new(agent::ErrorKind::Tool, format!("this call is not allowed: {}", ruling.why)))
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Tool for Guarded {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    fn options(&self) -> ToolOptions {
        self.tool.options()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        self.check(&req)?;
        self.tool.call(req).await
    }

    async fn warm_up(&self) -> Result<()> {
        self.tool.warm_up().await
    }

    async fn close(&self) -> Result<()> {
        self.tool.close().await
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        self.tool.reconcile(req).await
    }
}
