//! Protocols of one client over two streams of bytes: an editor's, and lines of JSON.
//!
//! Whoever starts the program is the one client, so nobody is asked for a key; the sessions are those of the tenant `local`.

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

/// What a protocol's desk is made of.
struct Serving {
    app: App,
    /// Who the client is.
    caller: Caller,
    /// The agent that is served.
    agent: Arc<str>,
    out: Out,
}

/// Who answers a client in a protocol.
trait Desk: Send + Sync + 'static {
    /// What the client says in a line.
    type Message: DeserializeOwned;

    fn new(serving: Serving) -> Self;

    /// Takes what the client says; gives what there is to do, while others are heard.
    fn take(self: Arc<Self>, message: Self::Message) -> Option<BoxFuture<'static, ()>>;

    /// Says that a line is none of the protocol's, and why.
    fn refuse(&self, why: String) -> impl Future<Output = ()> + Send;
}

/// Answers until the client closes its end.
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
    // What is under way when the client goes away is dropped with its task, which cancels it.
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
    /// Serves one of the agents to an editor that speaks the Agent Client Protocol, version 1, until the editor closes its end. What is under
    /// way then is cancelled.
    ///
    /// A conversation of the editor's is a session, which it may load again. What a tool call asks about is a permission; any other question
    /// is said, and the next thing that the user says answers it. Servers of tools that the editor names are passed over: the agent has
    /// those that its author gave it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`](agent::ErrorKind::InvalidRequest) if there is no such agent;
    /// [`ErrorKind::Transport`](agent::ErrorKind::Transport) if the client cannot be heard or told.
    pub async fn serve_acp(
        &self,
        agent: &str,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<()> {
        serve::<acp::Editor>(self.app().clone(), agent, reader, writer).await
    }

    /// Serves one of the agents over lines of JSON, as NexAU's programs have it (`2.0-stream`), until the client closes its end. What is under
    /// way then is cancelled.
    ///
    /// `agent.stream` tells a run in events of AG-UI, `agent.query` gives its answer, and `agent.stop` ends it; each is answered while the
    /// others are under way.
    ///
    /// # Errors
    /// As [`serve_acp`](Self::serve_acp).
    pub async fn serve_json_lines(
        &self,
        agent: &str,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<()> {
        serve::<json_lines::Program>(self.app().clone(), agent, reader, writer).await
    }
}
