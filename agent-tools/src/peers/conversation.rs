//! Mapping from agents to conversations of a peer.

use agent_core::RunCx;
use serde_json::Value;

/// Conversation of a peer with one agent of a session. Its id is stored in the session's shared
/// storage, so that the agent continues it when it is resumed.
pub(super) struct Conversation<'a> {
    cx: &'a RunCx,
    key: String,
}

impl<'a> Conversation<'a> {
    /// Returns the conversation with the tool of this name.
    pub(super) fn of(cx: &'a RunCx, tool: &str) -> Self {
        Self { cx, key: format!("peers/{}/{tool}", cx.ids().agent_id) }
    }

    /// Returns the peer's id of the conversation, if it has started.
    pub(super) fn id(&self) -> Option<String> {
        self.cx.globals().get_value(&self.key)?.as_str().map(str::to_owned)
    }

    /// Stores the peer's id of the conversation. It becomes durable with the call's result.
    pub(super) fn set(&self, id: &str) {
        if self.id().as_deref() != Some(id) {
            self.cx.globals().set_value(&self.key, Value::from(id));
        }
    }
}
