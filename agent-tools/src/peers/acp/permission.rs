//! Permissions that an agent asks for.

use std::{fmt, sync::Arc};

use agent_core::{Ask, Result, ToolRequest};
use serde_json::{Value, json};

use super::{
    Inner,
    wire::{AskPermission, PermissionOption},
};

/// The kind of the question whether an agent may do something. Its payload has the `agent`, its `tool_call` and the `options`, each
/// with `optionId`, `name` and `kind`; the answer is the id of one of them, or `cancelled`.
pub const ACP_PERMISSION: &str = "acp_permission";

/// The answer that gives no permission and chooses no option.
const CANCELLED: &str = "cancelled";

/// What an agent wants to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// What it says that it wants to do.
    pub title: String,
    /// What kind of thing it is, in the protocol's words: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch` or `other`.
    pub kind: Option<String>,
    /// The call, as the protocol has it: with the `rawInput` of the agent's tool and the `locations` of files, where the agent says them.
    pub tool_call: Value,
}

/// Whether an agent may do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// A person is asked.
    Ask,
    /// It may, this once; a person is asked if the agent offers no such answer.
    Allow,
    /// It may not.
    Reject,
}

/// Decides which permissions an agent gets.
#[derive(Clone)]
pub(super) struct Rule(pub(super) Arc<dyn Fn(&PermissionRequest) -> Permission + Send + Sync>);

impl Default for Rule {
    fn default() -> Self {
        Self(Arc::new(|_| Permission::Ask))
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rule")
    }
}

/// The outcome in the protocol's words, by the rule or by a person; or an error that suspends the run until there is one.
pub(super) fn decide(agent: &Inner, req: &ToolRequest, ask: &AskPermission) -> Result<Value> {
    let call = &ask.tool_call;
    let text = |field: &str| call[field].as_str().map(str::to_owned);
    let wanted =
        PermissionRequest { title: text("title").unwrap_or_default(), kind: text("kind"), tool_call: call.clone() };
    let option = |kind: &str| ask.options.iter().find(|option| option.kind == kind);
    match (agent.rule.0)(&wanted) {
        Permission::Allow => match option("allow_once") {
            Some(allow) => Ok(selected(&allow.option_id)),
            None => by_person(agent, req, ask),
        },
        Permission::Reject => {
            let reject = option("reject_once").or_else(|| option("reject_always"));
            Ok(reject.map_or_else(|| json!({"outcome": CANCELLED}), |reject| selected(&reject.option_id)))
        }
        Permission::Ask => by_person(agent, req, ask),
    }
}

fn by_person(agent: &Inner, req: &ToolRequest, ask: &AskPermission) -> Result<Value> {
    let options: Vec<_> = ask.options.iter().map(shown).collect();
    let ids = ask.options.iter().map(|option| option.option_id.as_str()).chain([CANCELLED]);
    let schema = json!({"type": "string", "enum": ids.collect::<Vec<_>>()});
    let payload = json!({"agent": agent.name, "tool_call": ask.tool_call, "options": options});
    let nonce = ask.tool_call["toolCallId"].as_str().map_or("1", |id| crate::text::cut(id, 100));
    let chosen: String = req.ask_with(Ask::new(ACP_PERMISSION, payload).nonce(nonce).schema(schema))?.parse()?;
    Ok(if chosen == CANCELLED { json!({"outcome": CANCELLED}) } else { selected(&chosen) })
}

fn shown(option: &PermissionOption) -> Value {
    json!({"optionId": option.option_id, "name": option.name, "kind": option.kind})
}

fn selected(id: &str) -> Value {
    json!({"outcome": "selected", "optionId": id})
}
