//! What is known of calls between the question and the result.

use std::collections::BTreeMap;

use agent_core::{Result, RunCx, ToolRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Decision;
use crate::kept::Kept;

const PENDING: Kept<BTreeMap<String, Pending>> = Kept::new("approval", "pending");

/// A call that was decided about together with others, or that runs otherwise than the model wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The arguments that were asked about: the decision holds for no others.
    asked: Value,
    /// What was decided with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided: Option<Decision>,
    /// The arguments that a person put in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edited: Option<Value>,
}

impl Pending {
    /// Notes what was decided about a call together with others.
    pub(super) fn decide(cx: &RunCx, req: &ToolRequest, decision: Decision) -> Result<()> {
        let now = Self { asked: (*req.args).clone(), decided: Some(decision), edited: None };
        PENDING.update(cx, |all| drop(all.insert(req.call.id.to_string(), now.clone())))
    }

    /// What was decided about the very same call together with others.
    pub(super) fn decided(cx: &RunCx, req: &ToolRequest) -> Result<Option<Decision>> {
        PENDING.update(cx, |all| {
            all.get(&*req.call.id).filter(|before| before.asked == *req.args).and_then(|before| before.decided.clone())
        })
    }

    /// Notes that other arguments are taken.
    pub(super) fn edit(cx: &RunCx, req: &ToolRequest, arguments: &Value) -> Result<()> {
        PENDING.update(cx, |all| {
            let new = || Self { asked: (*req.args).clone(), decided: None, edited: None };
            all.entry(req.call.id.to_string()).or_insert_with(new).edited = Some(arguments.clone());
        })
    }

    /// Takes what was noted of a call that is answered.
    pub(super) fn take(cx: &RunCx, req: &ToolRequest) -> Result<Option<Self>> {
        if !PENDING.is_set(cx) {
            return Ok(None);
        }
        PENDING.update(cx, |all| all.remove(&*req.call.id))
    }

    /// The run ends: forgets what is left, unless the run may go on.
    pub(super) fn end(cx: &RunCx, end: &Result<agent_core::RunEnd>) {
        PENDING.end(cx, end);
    }
}
