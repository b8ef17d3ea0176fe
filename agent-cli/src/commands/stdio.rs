//! `agent acp` and `agent stdio`.

use std::time::Duration;

use agent::Result;
use agent_server::{Served, Server};

use crate::{
    cli::{Global, OneAgent},
    load::load,
    output::End,
};

/// Time for active runs after the client disconnected.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves the agent to an editor, until the editor closes its end.
pub(crate) async fn acp(wanted: OneAgent, global: &Global) -> Result<End> {
    let (server, name) = server(wanted, global).await?;
    server.serve_acp(&name, tokio::io::stdin(), tokio::io::stdout()).await?;
    server.drain(DRAIN).await;
    Ok(End::Finished)
}

/// Serves the agent to a program over lines of JSON, until the program closes its end.
pub(crate) async fn stdio(wanted: OneAgent, global: &Global) -> Result<End> {
    let (server, name) = server(wanted, global).await?;
    server.serve_json_lines(&name, tokio::io::stdin(), tokio::io::stdout()).await?;
    server.drain(DRAIN).await;
    Ok(End::Finished)
}

async fn server(wanted: OneAgent, global: &Global) -> Result<(Server, String)> {
    let global = Global { file: wanted.agent_file.or_else(|| global.file.clone()), ..global.clone() };
    let loaded = load(&global).await?;
    let agent = loaded.build()?;
    let name = agent.name().to_owned();
    let served = Served::new(agent).description(loaded.description.unwrap_or_default());
    Ok((Server::builder().agent(served).store(loaded.journal).build()?, name))
}
