//! `agent mcp`.

use std::sync::Arc;

use agent::{
    Error, Result,
    core::run::SubAgent,
    tools::{ToolSet, mcp::Server},
};

use crate::{
    cli::{Global, Mcp},
    load::load,
    output::{End, plain},
};

/// Serves the agent, or its tools, until the client goes away or somebody interrupts it.
pub(crate) async fn mcp(wanted: Mcp, global: &Global) -> Result<End> {
    // Tools are served without a model.
    let model = global.model.clone().or_else(|| wanted.tools.then(|| "offline:any".into()));
    let global = &Global { model, ..global.clone() };
    let loaded = load(global).await?;
    let agent = loaded.build()?;
    let mut server = Server::builder(agent.name()).version(env!("CARGO_PKG_VERSION"));
    if wanted.tools {
        if agent.shared_tools().is_empty() {
            return Err(Error::config("the agent has no tools to serve; --dir gives it those for files"));
        }
        server = server.tools(agent.shared_tools().iter().cloned().fold(ToolSet::new("tools"), ToolSet::shared));
    } else {
        let about = loaded.description.as_deref().or(global.system.as_deref()).unwrap_or("Answers what it is asked.");
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
    eprintln!("{}", plain(&format!("agent: serving at http://{}; Ctrl-C ends it", serving.address())));
    agent::shutdown_signal().await.map_err(|e| crate::output::cannot("signals", e))?;
    Ok(End::Finished)
}
