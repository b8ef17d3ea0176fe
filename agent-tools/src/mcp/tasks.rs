//! Tasks: calls that a server continues after its first answer, and that the client polls.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use rmcp::{
    RoleClient,
    model::{
        CallToolResult, CancelTaskParams, CreateTaskResult, GetTaskParams, InputRequests, Task, TaskPayload,
        UpdateTaskParams,
    },
    service::Peer,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{calls::Call, connection::Connection, failure::short, inputs};

/// Polling interval of a task whose server suggests none, and its limits.
const INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// Timeout for sending a cancellation.
const NOTICE: Duration = Duration::from_secs(5);

/// Polls a task until it ends, and answers its requests for input. A change of its state extends
/// the call's timeout like a report of progress.
pub(super) async fn follow(
    connection: &Connection,
    call: &Arc<Call>,
    created: CreateTaskResult,
) -> Result<CallToolResult> {
    let (mut task, mut answered) = (created.task, BTreeSet::new());
    let mut unfinished = Unfinished(Some((connection.peer.clone(), task.task_id.clone())));
    loop {
        tokio::time::sleep(interval(&task)).await;
        let polled = connection.peer.get_task(GetTaskParams::new(&*task.task_id)).await;
        let polled = polled.map_err(|error| connection.failed(error))?.task;
        if polled.task.status != task.status || polled.task.last_updated_at != task.last_updated_at {
            call.progress(progress(&polled.task));
        }
        task = polled.task;
        match polled.payload {
            TaskPayload::Working => {}
            TaskPayload::InputRequired { input_requests } => {
                let asked = input_requests.into_iter().filter(|(key, _)| !answered.contains(key)).collect();
                let given = give(connection, call, &task.task_id, asked).await;
                if given.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
                    // The task waits for the answer, too.
                    unfinished.0 = None;
                }
                answered.extend(given?);
            }
            TaskPayload::Completed { result } => {
                unfinished.0 = None;
                return serde_json::from_value(Value::Object(result))
                    .map_err(|e| Error::tool("The task ended with something that is no result.").with_source(e));
            }
            TaskPayload::Failed { error } => {
                unfinished.0 = None;
                let why = error.get("message").and_then(Value::as_str).unwrap_or("without a reason");
                return Err(Error::tool(format!("The task failed: {}", short(why))));
            }
            TaskPayload::Cancelled => {
                unfinished.0 = None;
                return Err(Error::tool("The server cancelled the task."));
            }
            _ => return Err(Error::tool("The task has a state that is unknown here.")),
        }
    }
}

/// Answers the requests of a task; returns their keys.
async fn give(connection: &Connection, call: &Call, task: &str, asked: InputRequests) -> Result<Vec<String>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let responses = inputs::answer(&connection.settings, call, asked).await?;
    let keys = responses.keys().cloned().collect();
    let told = connection.peer.update_task(UpdateTaskParams::new(task, responses)).await;
    told.map_err(|error| connection.failed(error))?;
    Ok(keys)
}

fn interval(task: &Task) -> Duration {
    task.poll_interval_ms.map_or(INTERVAL, |ms| Duration::from_millis(ms).clamp(SHORTEST, LONGEST))
}

fn progress(task: &Task) -> Value {
    let mut progress = json!({"task": task.status});
    if let Some(message) = &task.status_message {
        progress["message"] = short(message).into();
    }
    progress
}

/// Task that has not ended. Dropping it cancels the task at the server.
struct Unfinished(Option<(Peer<RoleClient>, String)>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some((peer, task)) = self.0.take() else { return };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(NOTICE, peer.cancel_task(CancelTaskParams::new(task))).await;
            });
        }
    }
}
