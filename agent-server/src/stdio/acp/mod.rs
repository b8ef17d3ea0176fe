//! Agent side of the Agent Client Protocol, version 1.

mod content;
mod desk;
mod elicitation;
mod permission;
mod sessions;
mod told;
mod turn;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

pub(super) use self::desk::Editor;
use self::desk::Refusal;
use super::{Desk, Serving};

/// Message of the client, before its kind is known.
#[derive(Deserialize)]
pub(super) struct Envelope {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Option<Value>,
}

impl Desk for Editor {
    type Message = Envelope;

    fn new(serving: Serving) -> Self {
        Self::of(serving)
    }

    fn take(self: Arc<Self>, message: Envelope) -> Option<BoxFuture<'static, ()>> {
        match message {
            Envelope { id: Some(id), method: Some(method), params, .. } => {
                return Some(Box::pin(self.answer(id, method, params)));
            }
            Envelope { method: Some(method), params, .. } => self.hear(&method, &params),
            Envelope { id: Some(id), result, .. } => self.answered(&id, result),
            Envelope { .. } => {}
        }
        None
    }

    async fn refuse(&self, why: String) {
        self.reply(&Value::Null, Err(Refusal::garbled(why))).await;
    }
}
