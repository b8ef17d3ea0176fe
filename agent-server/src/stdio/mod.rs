//! Protocols of one client over two streams of bytes: an editor's, and lines of JSON.
//!
//! Whoever starts the program is the one client, so nobody is asked for a key; the sessions are those of the tenant `local`.

mod acp;
mod json_lines;
mod lines;

use agent::Result;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Caller, Scope, server::Server};

/// Who the client is.
fn client() -> Caller {
    Caller::new("local", "local").scopes(Scope::ALL)
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
        acp::serve(self.app().clone(), agent, reader, writer).await
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
        json_lines::serve(self.app().clone(), agent, reader, writer).await
    }
}
