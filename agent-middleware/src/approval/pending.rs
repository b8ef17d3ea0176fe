//! State of calls between the question and the result.

use std::collections::BTreeMap;

use agent_core::{Result, RunCx, ToolRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Decision;
use crate::run_value::RunValue;

const PENDING: RunValue<BTreeMap<String, Pending>> = RunValue::new("approval", "pending");

/// A call that was decided in a batch, or whose arguments a person edited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The arguments in the question: the decision applies to no others.
    asked: Value,
    /// The decision from a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided: Option<Decision>,
    /// The arguments that a person edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edited: Option<Value>,
}

impl Pending {
    /// Records the decision about a call from a batch.
    pub(super) fn decide(cx: &RunCx, req: &ToolRequest, decision: Decision) -> Result<()> {
        let now = Self { asked: (*req.args).clone(), decided: Some(decision), edited: None };
        PENDING.update(cx, |all| drop(all.insert(req.call.id.to_string(), now.clone())))
    }

    /// Returns the decision about exactly this call from a batch.
    pub(super) fn decided(cx: &RunCx, req: &ToolRequest) -> Result<Option<Decision>> {
        PENDING.update(cx, |all| {
            all.get(&*req.call.id).filter(|before| before.asked == *req.args).and_then(|before| before.decided.clone())
        })
    }

    /// Records edited arguments.
    pub(super) fn edit(cx: &RunCx, req: &ToolRequest, arguments: &Value) -> Result<()> {
        PENDING.update(cx, |all| {
            let new = || Self { asked: (*req.args).clone(), decided: None, edited: None };
            all.entry(req.call.id.to_string()).or_insert_with(new).edited = Some(arguments.clone());
        })
    }

    /// Removes and returns the state of an answered call.
    pub(super) fn take(cx: &RunCx, req: &ToolRequest) -> Result<Option<Self>> {
        if !PENDING.is_set(cx) {
            return Ok(None);
        }
        PENDING.update(cx, |all| all.remove(&*req.call.id))
    }

    /// Discards the remaining state at the end of the run, unless the run may resume.
    pub(super) fn end(cx: &RunCx, end: &Result<agent_core::RunEnd>) {
        PENDING.end(cx, end);
    }
}
