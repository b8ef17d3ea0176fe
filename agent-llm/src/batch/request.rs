//! [`BatchRequest`], and requests as encoded by the model's wire.

use std::sync::Arc;

use agent_core::{
    History, MemoryJournal, Message, ModelParams, ModelRequest, Part, Result, RunIds, SystemMessage, ToolSpec,
    ToolSpecs,
    engine::{Emitter, EventHub, RunDriver, RunLog, RunParts},
    storage::{GlobalStorage, State},
};
use http::{HeaderMap, Uri};
use serde_json::value::RawValue;

use crate::provider::desk::{Desk, protocol};

/// One request of a batch.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BatchRequest {
    /// System prompt.
    pub system: Option<SystemMessage>,
    /// Conversation.
    pub messages: History,
    /// Tools on offer. A batch executes no tools: a tool call ends the answer.
    pub tools: ToolSpecs,
    /// Generation parameters.
    pub params: Arc<ModelParams>,
}

impl BatchRequest {
    /// Creates a request from a conversation.
    pub fn new(messages: History) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Creates a request of one user message.
    pub fn user(text: impl Into<String>) -> Self {
        let mut messages = History::default();
        // A conversation may always begin with a user message.
        let _ = messages.push(Message::user(text));
        Self::new(messages)
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = Some(SystemMessage::new(vec![Part::text(text)]));
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: ToolSpec) -> Self {
        self.tools = self.tools.iter().cloned().chain([tool]).collect();
        self
    }

    /// Sets the generation parameters.
    #[must_use]
    pub fn params(mut self, params: ModelParams) -> Self {
        self.params = Arc::new(params);
        self
    }
}

impl From<&ModelRequest> for BatchRequest {
    fn from(req: &ModelRequest) -> Self {
        let ModelRequest { system, messages, tools, params, .. } = req;
        Self { system: system.clone(), messages: messages.clone(), tools: tools.clone(), params: params.clone() }
    }
}

/// A request as encoded by the wire.
pub(super) struct Written {
    pub(super) custom_id: String,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Box<RawValue>,
}

pub(super) fn write(
    desk: &Desk,
    requests: impl IntoIterator<Item = (impl Into<String>, BatchRequest)>,
) -> Result<Vec<Written>> {
    let run = nobodys_run()?;
    let write = |(custom_id, request): (_, BatchRequest)| {
        let mut req = ModelRequest::new(run.cx().clone());
        (req.system, req.messages, req.tools, req.params) =
            (request.system, request.messages, request.tools, request.params);
        let (head, body) = desk.model.codec().encode(&req)?.into_parts();
        let no_json = |e| protocol(&desk.provider.name, "a request that is no JSON is of no batch").with_source(e);
        let body = serde_json::from_slice(&body).map_err(no_json)?;
        Ok(Written { custom_id: Into::into(custom_id), uri: head.uri, headers: head.headers, body })
    };
    requests.into_iter().map(write).collect()
}

/// Creates a run that nothing drives, because every model request needs a run.
fn nobodys_run() -> Result<RunDriver> {
    let (ids, journal) = (Arc::new(RunIds::root("batch", "batch")), Arc::new(MemoryJournal::default()));
    let writer = journal.open_now(&ids.session, &ids.agent_id)?;
    let emitter = Emitter::new(ids.clone(), EventHub::new(journal.clone(), ids.session.clone()), None);
    let (state, globals) = (State::default(), GlobalStorage::default());
    let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
    let mut parts = RunParts::new(ids, emitter, log);
    (parts.state, parts.globals) = (state, globals);
    Ok(RunDriver::new(parts))
}
