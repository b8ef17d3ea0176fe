//! What is known of calls between the question and the result.

use std::collections::BTreeMap;

use agent_core::{Result, RunCx, ToolRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kept::Kept;

const PENDING: Kept<BTreeMap<String, Pending>> = Kept::new("approval", "pending");

/// A call that is asked about, or that runs otherwise than the model wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The arguments that were asked about: the answer holds for no others.
    asked: Value,
    /// The arguments that a person put in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edited: Option<Value>,
}

impl Pending {
    /// Notes what is asked about; true if the very same was asked about before.
    pub(super) fn ask(cx: &RunCx, req: &ToolRequest) -> Result<bool> {
        let now = Self { asked: (*req.args).clone(), edited: None };
        PENDING.update(cx, |all| {
            let before = all.insert(req.call.id.to_string(), now);
            before.is_some_and(|before| before.asked == *req.args)
        })
    }

    /// Notes that other arguments are taken.
    pub(super) fn edit(cx: &RunCx, req: &ToolRequest, arguments: &Value) -> Result<()> {
        let now = Self { asked: (*req.args).clone(), edited: Some(arguments.clone()) };
        PENDING.update(cx, |all| drop(all.insert(req.call.id.to_string(), now)))
    }

    /// Takes what was noted of a call that is answered.
    pub(super) fn take(cx: &RunCx, req: &ToolRequest) -> Result<Option<Self>> {
        PENDING.update(cx, |all| all.remove(&*req.call.id))
    }

    /// The run ends: forgets what is left, unless the run may go on.
    pub(super) fn end(cx: &RunCx, end: &Result<agent_core::RunEnd>) {
        PENDING.end(cx, end);
    }
}
