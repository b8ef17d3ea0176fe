//! Other people's agents, as tools: [`A2aAgent`] is one at a URL, `AcpAgent` one that is a program.
//!
//! A peer takes one argument, `message`, and `files` if it has a workspace, and gives the peer's answer. It is made an agent of its own by `Agent::of_tool` of
//! `agent-exec`, and is then called as any agent is: delegated to, recalled by its id, asked in code.
//!
//! | the peer | the run |
//! |---|---|
//! | says something, thinks, calls tools, plans | events [`ToolProgress`](agent_core::EventKind::ToolProgress): `{"text": ..}`, `{"thought": ..}`, `{"tool_call": ..}`, `{"plan": ..}`, `{"status": ..}` |
//! | wants to know something, or a permission | waits for a person, as for any question; the answer goes on in the same task or turn |
//! | answers | goes on with the answer; files and data are in the result's value |
//! | fails, dies, hangs, sends garbage or too much | has a call that failed, with the reason |
//! | is called again in the same conversation | the peer's own conversation goes on |
//!
//! A call that is cancelled, runs out of time or is dropped cancels what the peer does. The run does not wait for that: a process
//! that ends at once afterwards may end before the peer was told.
//!
//! # After a crash
//!
//! Before a message goes out, the journal says so; when the peer said under which id it works, the journal has the id. A run that
//! goes on finds the task by its id. Where it cannot be found, nobody knows whether the peer has the message, and it is not sent
//! twice in silence: a person is asked, as for every call [in doubt](agent_core::tool::Doubt).

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
pub use self::acp::{ACP_PERMISSION, AcpAgent, AcpBuilder, Permission, PermissionRequest};
use self::{conversation::Conversation, sending::Sending};

/// What every peer takes.
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

/// The work of a call with the peer `name`, within its own time. The run's deadline and cancellation drop it.
async fn in_time<T>(name: &str, longest: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let late = || Error::new(ErrorKind::Timeout, format!("the agent '{name}' gave no answer within {longest:?}"));
    tokio::time::timeout(longest, work).await.unwrap_or_else(|_| Err(late()))
}
