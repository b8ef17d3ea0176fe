//! Remote agents as tools: [`A2aAgent`] is an agent at a URL, `AcpAgent` a local program.
//!
//! A peer takes the argument `message`, and `files` if it has a workspace, and returns the peer's
//! answer. `Agent::of_tool` of `agent-exec` turns it into an agent, which is then used like any
//! other: delegated to, resumed by its id, called in code.
//!
//! | the peer | the run |
//! |---|---|
//! | sends text, thoughts, tool calls, plans | emits events [`ToolProgress`](agent_core::EventKind::ToolProgress): `{"text": ..}`, `{"thought": ..}`, `{"tool_call": ..}`, `{"plan": ..}`, `{"status": ..}` |
//! | asks a question, or requests a permission | waits for a person, as for any question; the answer continues the same task or turn |
//! | answers | continues with the answer; files and data are in the result's value |
//! | fails, crashes, hangs, sends invalid or too much data | records a failed call, with the reason |
//! | is called again in the same conversation | continues the peer's own conversation |
//!
//! A call that is cancelled, times out or is dropped cancels the peer's work. The run does not wait
//! for the cancellation: if the process exits immediately afterwards, the peer may not receive it.
//!
//! # After a crash
//!
//! The journal records a message before it is sent, and the peer's task id once it is known.
//! A resumed run finds the task by its id. If the task cannot be found, it is unknown whether the
//! peer received the message, which is not silently sent twice: a person is asked, as for every
//! call [in doubt](agent_core::tool::Doubt).

#[cfg(feature = "a2a")]
mod a2a;
#[cfg(feature = "acp")]
mod acp;
#[cfg(feature = "workspace")]
mod attached;
mod conversation;
mod failure;
mod sending;

use std::time::Duration;

use agent_core::{Error, ErrorKind, Result, ToolSpec};
use serde::Deserialize;
use serde_json::json;

#[cfg(feature = "a2a")]
pub use self::a2a::{A2A_INPUT, A2aAgent, A2aBuilder};
#[cfg(feature = "acp")]
pub use self::acp::{ACP_ELICITATION, ACP_PERMISSION, AcpAgent, AcpBuilder, Permission, PermissionRequest};
use self::{conversation::Conversation, sending::Sending};

/// Arguments of every peer.
#[derive(Deserialize)]
struct Args {
    message: String,
    /// Files of the peer's workspace.
    #[serde(default)]
    #[cfg_attr(not(feature = "workspace"), expect(dead_code, reason = "there is no workspace"))]
    files: Vec<String>,
}

fn spec(name: &str, description: &str, takes_files: bool) -> ToolSpec {
    let message = json!({"type": "string", "description": "The task, complete in itself."});
    let mut parameters = json!({
        "type": "object", "properties": {"message": message}, "required": ["message"], "additionalProperties": false,
    });
    if takes_files {
        let about = "Files of the workspace that go with it.";
        parameters["properties"]["files"] = json!({"type": "array", "items": {"type": "string"}, "description": about});
    }
    ToolSpec::new(name, description, parameters)
}

/// Runs the work of a call with the peer `name`, within its own timeout. The run's deadline and
/// cancellation drop it.
async fn in_time<T>(name: &str, longest: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let late = || Error::new(ErrorKind::Timeout, format!("the agent '{name}' gave no answer within {longest:?}"));
    tokio::time::timeout(longest, work).await.unwrap_or_else(|_| Err(late()))
}
