//! Which conversation of a peer a call goes on with.

use agent_core::RunCx;
use serde_json::Value;

/// A peer's conversation with one agent of a session: its id is kept in the session's shared storage, so that the agent goes on
/// with it when it is recalled.
pub(super) struct Conversation<'a> {
    cx: &'a RunCx,
    key: String,
}

impl<'a> Conversation<'a> {
    /// The conversation with the tool of this name.
    pub(super) fn of(cx: &'a RunCx, tool: &str) -> Self {
        Self { cx, key: format!("peers/{}/{tool}", cx.ids().agent_id) }
    }

    /// Its id at the peer, if it began already.
    pub(super) fn id(&self) -> Option<String> {
        self.cx.globals().get_value(&self.key)?.as_str().map(str::to_owned)
    }

    /// Says under which id the peer has it. Kept with the call's result.
    pub(super) fn set(&self, id: &str) {
        if self.id().as_deref() != Some(id) {
            self.cx.globals().set_value(&self.key, Value::from(id));
        }
    }
}
