//! Side calls: calls of a model in addition to the agent's own.

use std::sync::Arc;

use agent_core::{
    ErrorKind, History, Message, Model, ModelParams, ModelRequest, OutputFormat, Part, Result, RunCx, SystemMessage,
};
use serde_json::Value;

/// A call of a model in addition to the agent's own. Its usage counts as the run's.
pub(crate) struct SideCall<'a> {
    model: &'a dyn Model,
    system: String,
    asked: String,
    params: ModelParams,
}

impl<'a> SideCall<'a> {
    /// Creates a call with instructions and input.
    pub(crate) fn new(model: &'a dyn Model, system: impl Into<String>, asked: impl Into<String>) -> Self {
        Self { model, system: system.into(), asked: asked.into(), params: ModelParams::default() }
    }

    pub(crate) fn max_tokens(mut self, most: u64) -> Self {
        self.params.max_tokens = Some(most);
        self
    }

    /// Requests JSON of this schema, if the provider supports that.
    pub(crate) fn json(mut self, name: &str, schema: Value) -> Self {
        if self.model.info().json_schema {
            self.params = self.params.output(OutputFormat::new(name, schema));
        }
        self
    }

    /// Makes the call and returns the model's text.
    pub(crate) async fn run(self, cx: &RunCx) -> Result<String> {
        let mut request = ModelRequest::new(cx.clone());
        request.messages = History::from_messages([Message::user(self.asked)])?;
        request.system = Some(SystemMessage::new(vec![Part::text(self.system)]));
        request.model = Some(Arc::new(self.model.info()));
        request.params = Arc::new(self.params);
        Ok(cx.call_model(self.model, request).await?.message.text())
    }
}

/// True for errors that end the run, however other errors of a side call are handled.
pub(crate) fn ends_the_run(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Cancelled
            | ErrorKind::Interrupted
            | ErrorKind::Stopped
            | ErrorKind::Limit
            | ErrorKind::Store
            | ErrorKind::NonDeterminism
    )
}
