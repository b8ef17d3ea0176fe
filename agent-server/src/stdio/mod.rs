//! Protocols of a single client over two byte streams: ACP for editors, and JSON lines.
//!
//! The process that starts this program is the only client, so no key is required; its sessions
//! belong to the tenant `local`.

mod acp;
mod json_lines;
mod lines;

use std::sync::Arc;

use agent::{Error, ErrorKind, Result};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use self::lines::Out;
use crate::{App, Caller, Scope, server::Server};

/// Parts of a protocol handler.
struct Serving {
    app: App,
    /// The client as a caller.
    caller: Caller,
    /// The served agent.
    agent: Arc<str>,
    out: Out,
}

/// Protocol handler of a client.
trait Desk: Send + Sync + 'static {
    /// Message of the client, in one line.
    type Message: DeserializeOwned;

    fn new(serving: Serving) -> Self;

    /// Handles a message; returns the remaining work, which runs concurrently with further
    /// messages.
    fn take(self: Arc<Self>, message: Self::Message) -> Option<BoxFuture<'static, ()>>;

    /// Reports an invalid line, with the reason.
    fn refuse(&self, why: String) -> impl Future<Output = ()> + Send;
}

/// Serves until the client closes its end.
async fn serve<D: Desk>(
    app: App,
    agent: &str,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<()> {
    let caller = Caller::new("local", "local").scopes(Scope::ALL);
    app.agent(&caller, agent).map_err(|error| Error::new(ErrorKind::InvalidRequest, error.message().to_owned()))?;
    let (mut lines, out, writing) = lines::open(reader, writer);
    let desk = Arc::new(D::new(Serving { app, caller, agent: agent.into(), out }));
    // Runs that are active when the client disconnects are dropped with their tasks, which cancels
    // them.
    let mut under_way = JoinSet::new();
    while let Some(line) = lines.next().await? {
        match line.and_then(|line| serde_json::from_value(line).map_err(|e| e.to_string())) {
            Ok(message) => desk.clone().take(message).into_iter().for_each(|work| drop(under_way.spawn(work))),
            Err(why) => desk.refuse(why).await,
        }
        while under_way.try_join_next().is_some() {}
    }
    under_way.shutdown().await;
    drop(desk);
    let _ = writing.await;
    Ok(())
}

impl Server {
    /// Serves one of the agents over the Agent Client Protocol, version 1, until the editor closes
    /// its end. Runs that are active then are cancelled.
    ///
    /// A conversation of the editor is a session, which it may load again. Questions about a tool
    /// call are permission requests; any other question is sent as text, and the next prompt
    /// answers it. MCP servers that the editor names are ignored: the agent has only its own tools.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`](agent::ErrorKind::InvalidRequest) if there is no such agent;
    /// [`ErrorKind::Transport`](agent::ErrorKind::Transport) if reading from or writing to the
    /// client fails.
    pub async fn serve_acp(
        &self,
        agent: &str,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<()> {
        serve::<acp::Editor>(self.app().clone(), agent, reader, writer).await
    }

    /// Serves one of the agents over the JSON lines protocol of NexAU's programs (`2.0-stream`),
    /// until the client closes its end. Runs that are active then are cancelled.
    ///
    /// `agent.stream` streams a run as AG-UI events, `agent.query` returns its answer, and
    /// `agent.stop` ends it; requests are handled concurrently.
    ///
    /// # Errors
    /// The errors of [`serve_acp`](Self::serve_acp).
    pub async fn serve_json_lines(
        &self,
        agent: &str,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<()> {
        serve::<json_lines::Program>(self.app().clone(), agent, reader, writer).await
    }
}
