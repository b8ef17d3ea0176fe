//! Sub-agents that a run waits for, and what tells them apart.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Checkpoint, id_within, is_default};

/// A sub-agent that a tool call or a hook started, and that code entered again gets back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildRun {
    /// The tool call that started it. For a hook that belongs to no call: its position, such as
    /// `step-2/before_model-0`.
    pub call_id: Arc<str>,
    /// The hook around the tool call that started it, such as `after_tool-0`. None if the tool
    /// itself did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Arc<str>>,
    /// The key by which it was called. Empty in a checkpoint of a release that did not write it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Number of sub-agents that the same call or hook started earlier under the same key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub n: u32,
    /// Prefix of the ids of its questions, as the run above asks them. Default: `call_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Arc<str>>,
    /// Its run.
    pub run: Arc<str>,
    /// True if its caller continues while it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Its checkpoint. None if it was linked and did not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
}

/// Start of the position of a hook that belongs to no call.
pub(crate) const HOOK_OF_STEP: &str = "step-";

/// Identity of a sub-agent within its caller's step: the n-th that a call or a hook started under a
/// key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChildKey {
    pub(crate) call_id: Arc<str>,
    pub(crate) hook: Option<Arc<str>>,
    pub(crate) key: String,
    pub(crate) n: u32,
}

impl ChildKey {
    /// Names the call or the hook that starts sub-agents.
    pub(crate) fn owner(&self) -> Arc<str> {
        owner(&self.call_id, self.hook.as_ref())
    }
}

fn owner(call_id: &Arc<str>, hook: Option<&Arc<str>>) -> Arc<str> {
    match hook {
        Some(hook) => format!("{call_id}/{hook}").into(),
        None => call_id.clone(),
    }
}

impl ChildRun {
    /// The first run `run` of the sub-agent under `key` that the call `call_id` started.
    pub fn new(call_id: Arc<str>, key: impl Into<String>, run: Arc<str>) -> Self {
        let key = key.into();
        Self { call_id, hook: None, key, n: 0, place: None, run, background: false, checkpoint: None }
    }

    /// Sets whether its caller continues while it runs. Default: false.
    #[must_use]
    pub fn in_background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// Prefix of the ids of its questions, as the run above asks them.
    pub fn place(&self) -> &Arc<str> {
        self.place.as_ref().unwrap_or(&self.call_id)
    }

    /// True if this is the sub-agent that `key` names.
    pub(crate) fn is(&self, key: &ChildKey) -> bool {
        let Self { call_id, hook, key: name, n, .. } = self;
        *call_id == key.call_id && *hook == key.hook && *n == key.n && (name.is_empty() || *name == key.key)
    }

    /// Names the call or the hook that started it.
    pub(crate) fn owner(&self) -> Arc<str> {
        owner(&self.call_id, self.hook.as_ref())
    }

    /// True if a hook started it, and not a tool. An earlier release recorded the key in the place
    /// of the hook.
    pub(crate) fn is_of_hook(&self) -> bool {
        self.hook.is_some() || self.call_id.starts_with(HOOK_OF_STEP) || *self.call_id == *self.key
    }

    /// True if both are the same sub-agent of their caller, such as one that was linked again by an
    /// earlier release because it did not begin.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let id = |child: &Self| (child.call_id.clone(), child.hook.clone(), child.key.clone(), child.n);
        id(self) == id(other)
    }

    /// True if the body of the tool call `id` started it.
    pub(crate) fn is_of_call(&self, id: &str) -> bool {
        self.hook.is_none() && *self.call_id == *id
    }

    /// True if a `before_agent` hook started it: it belongs to the whole run.
    pub(crate) fn is_of_beginning(&self) -> bool {
        id_within(&self.call_id, "step-0").is_some()
    }
}
