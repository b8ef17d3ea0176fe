//! Client of a call, as seen by a tool.
#![expect(deprecated, reason = "sampling and logging are on their way out of the protocol, and clients have them")]

use std::{fmt, sync::Arc};

use agent_core::{Error, Model, Result};
use rmcp::{
    RoleServer,
    model::{InputRequest, ListRootsRequest, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam},
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    ask::MISSING,
    connection::Connection,
    inputs::Inputs,
    notes::{Note, Notes},
    run::is_stateless,
    sampled::ClientModel,
};
use crate::{mcp::content, text::cut};

/// Maximum size of one log message to a client, in bytes.
const LONGEST: usize = 16 * 1024;

/// Client that calls a tool of a [`Server`](super::Server), available among the
/// [resources](agent_core::RunCx::resources) of the call's run for its duration. A tool that needs
/// it only works in a server.
///
/// ```
/// use std::sync::Arc;
///
/// use agent_core::{ModelRequest, History, Message, Result};
/// use agent_tools::{Resource, mcp::{Caller, LogLevel}, tool};
///
/// /// Says it in other words.
/// #[tool]
/// async fn rephrase(text: String, caller: Resource<Caller>, req: agent_core::ToolRequest) -> Result<String> {
///     caller.log(LogLevel::Info, "The client's own model is asked.");
///     let mut request = ModelRequest::new(req.cx.clone());
///     request.messages = History::from_messages([Message::user(format!("In other words: {text}"))])?;
///     Ok(req.cx.call_model(&caller.model()?, request).await?.message.text())
/// }
/// ```
#[derive(Clone)]
pub struct Caller {
    server: Arc<str>,
    connection: Arc<Connection>,
    context: RequestContext<RoleServer>,
    notes: mpsc::WeakSender<Note>,
    inputs: Option<Inputs>,
}

/// Severity of a log message to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Normal operation. The default level of a client that set none.
    #[default]
    Info,
    /// Normal but significant operation.
    Notice,
    /// Possible cause of an error.
    Warning,
    /// Something failed.
    Error,
    /// Failure of a component of the server.
    Critical,
    /// Immediate action is required.
    Alert,
    /// The server is unusable.
    Emergency,
}

impl Caller {
    pub(super) fn new(
        server: &str,
        connection: &Arc<Connection>,
        context: &RequestContext<RoleServer>,
        notes: &Notes,
        inputs: Option<Inputs>,
    ) -> Self {
        let (connection, context, notes) = (connection.clone(), context.clone(), notes.taker());
        Self { server: server.into(), connection, context, notes, inputs }
    }

    /// Returns the id of the client's connection, unique while the connection is open.
    pub fn connection(&self) -> &str {
        self.connection.id()
    }

    /// Writes to the client's log, if the client requested this level. Text is truncated to 16 KiB;
    /// other values of more than 16 KiB become truncated text. A client that reads slowly misses
    /// messages beyond 64. Messages logged after the end of the call are lost.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        let least = match is_stateless(&self.context) {
            true => self.context.meta.log_level().map(LogLevel::from),
            false => Some(self.connection.level()),
        };
        if least.is_none_or(|least| level < least) {
            return;
        }
        let data = match data.into() {
            Value::String(text) => cut(&text, LONGEST).into(),
            other if content::size(&other) > LONGEST => cut(&other.to_string(), LONGEST).into(),
            other => other,
        };
        let log = LoggingMessageNotificationParam::new(level.into(), data).with_logger(&*self.server);
        if let Some(notes) = self.notes.upgrade() {
            let _ = notes.try_send(Note::Log(log));
        }
    }

    /// Returns the model that the client provides for servers (sampling). The client chooses the
    /// model, and whether to ask its user first. The model takes no tools, and its usage is
    /// unknown.
    ///
    /// A client of revision 2026-07-28 receives the request as the result of its call, and makes the
    /// call again with the model's answer: the tool is then entered again from its beginning.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the client provides no model for servers.
    pub fn model(&self) -> Result<impl Model + use<>> {
        let can = self.context.client_capabilities().is_some_and(|can| can.sampling.is_some());
        if !can {
            let message = "This needs a model of the client's, and your client lets no server ask one.";
            return Err(Error::tool(message).with_context(MISSING, "sampling"));
        }
        Ok(ClientModel { peer: self.context.peer.clone(), inputs: self.inputs.clone() })
    }

    /// Returns the URIs of the client's roots: the folders that its user works in, as a hint.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the client has no roots, or does not answer.
    pub async fn roots(&self) -> Result<Vec<String>> {
        if self.context.client_capabilities().is_none_or(|can| can.roots.is_none()) {
            let message = "This needs the roots of your client, which has none.";
            return Err(Error::tool(message).with_context(MISSING, "roots"));
        }
        let failed = "The client could not be asked for its roots.";
        let listed = match &self.inputs {
            Some(inputs) => {
                let request = InputRequest::ListRoots(ListRootsRequest::default());
                ListRootsResult::deserialize(inputs.request("roots", request).await)
                    .map_err(|e| Error::tool(failed).with_source(e))?
            }
            None => self.context.peer.list_roots().await.map_err(|e| Error::tool(failed).with_source(e))?,
        };
        Ok(listed.roots.into_iter().map(|root| root.uri).collect())
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("server", &self.server).finish_non_exhaustive()
    }
}

impl From<LogLevel> for LoggingLevel {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Notice => Self::Notice,
            LogLevel::Warning => Self::Warning,
            LogLevel::Error => Self::Error,
            LogLevel::Critical => Self::Critical,
            LogLevel::Alert => Self::Alert,
            LogLevel::Emergency => Self::Emergency,
        }
    }
}

impl From<LoggingLevel> for LogLevel {
    fn from(level: LoggingLevel) -> Self {
        match level {
            LoggingLevel::Debug => Self::Debug,
            LoggingLevel::Info => Self::Info,
            LoggingLevel::Notice => Self::Notice,
            LoggingLevel::Warning => Self::Warning,
            LoggingLevel::Error => Self::Error,
            LoggingLevel::Critical => Self::Critical,
            LoggingLevel::Alert => Self::Alert,
            LoggingLevel::Emergency => Self::Emergency,
        }
    }
}
