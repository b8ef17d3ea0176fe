//! Permission requests of an agent.

use std::{fmt, sync::Arc};

use agent_core::{Ask, Result, ToolRequest};
use serde_json::{Value, json};

use super::{
    Inner,
    wire::{AskPermission, PermissionOption},
};

/// Kind of the question about a permission request. Its payload has the `agent`, its `tool_call`
/// and the `options`, each with `optionId`, `name` and `kind`; the answer is the id of an option,
/// or `cancelled`.
pub const ACP_PERMISSION: &str = "acp_permission";

/// Answer that grants nothing and selects no option.
const CANCELLED: &str = "cancelled";

/// Permission request of an agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The agent's title of the action.
    pub title: String,
    /// Kind of the action, in the protocol's terms: `read`, `edit`, `delete`, `move`, `search`,
    /// `execute`, `think`, `fetch` or `other`.
    pub kind: Option<String>,
    /// Tool call in the protocol's form: with the `rawInput` of the agent's tool and the
    /// `locations` of files, if the agent reports them.
    pub tool_call: Value,
}

/// Decision on a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// Asks a person.
    Ask,
    /// Allows the action once; asks a person if the agent offers no such option.
    Allow,
    /// Rejects the action.
    Reject,
}

/// Rule that decides permission requests.
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

/// Returns the outcome in the protocol's form, decided by the rule or by a person; or an error that
/// suspends the run until a person answers.
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
