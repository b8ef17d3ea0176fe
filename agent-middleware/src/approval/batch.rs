//! A single question about all calls of a message.

use std::collections::BTreeMap;

use agent_core::{Result, RunCx, ToolBatch, ToolRequest, tool::BatchCall};
use serde_json::{Map, Value, json};

use super::{Approval, Decision, accept, form, pending::Pending, to_json, unanswered};
use crate::permissions::Policy;

/// Asks about the undecided calls of the message, and records the decision about each.
pub(super) async fn ask(approval: &Approval, cx: &RunCx, batch: &ToolBatch) -> Result<()> {
    let mut open: Vec<(&ToolRequest, String)> = Vec::new();
    let is_asked = |call: &&BatchCall| {
        call.answer.is_none() && call.request.tool.is_some() && approval.approver(&call.request.call.name).is_none()
    };
    for call in batch.calls.iter().filter(is_asked) {
        let ruling = approval.ruling(cx, &call.request).await?;
        if ruling.policy == Policy::Ask && Pending::decided(cx, &call.request)?.is_none() {
            open.push((&call.request, ruling.why));
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    let config = &approval.config;
    let calls: Vec<_> = open.iter().map(|(req, why)| form::request(config, req, why.clone())).collect();
    let schemas = open
        .iter()
        .enumerate()
        .map(|(place, (req, _))| (req.call.id.to_string(), form::schema(config, req, place, approval.store.is_some())));
    let schemas: Map<_, _> = schemas.collect();
    let ids: Vec<_> = open.iter().map(|(req, _)| &req.call.id).collect();
    let schema = json!({"type": "object", "properties": schemas, "required": ids, "additionalProperties": false});
    let denied: BTreeMap<_, _> = ids.iter().map(|id| (*id, unanswered())).collect();
    let real: Vec<_> = open.iter().map(|(req, _)| json!([req.call.name, req.args])).collect();
    let question = approval.question("approvals", json!({"calls": calls}), schema, to_json(&denied)).about(real.into());
    let mut answers: BTreeMap<String, Value> = cx.ask_with(question)?.parse()?;
    for (req, _) in open {
        let answer = answers.remove(&*req.call.id).unwrap_or_default();
        let decision = accept(answer, &config.accepted()).unwrap_or_else(Decision::reject);
        Pending::decide(cx, req, decision)?;
    }
    Ok(())
}
