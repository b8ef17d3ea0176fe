//! Guard that cancels a task when its call is dropped.

use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{
    binding::{Operation, Target},
    client::Client,
};

/// Cancels the task when dropped, unless the task was [left](Self::leave).
pub(super) struct Guard {
    client: Client,
    target: Target,
    task: Option<String>,
}

impl Guard {
    pub(super) fn new(client: &Client, target: &Target, task: &str) -> Self {
        Self { client: client.clone(), target: target.clone(), task: Some(task.to_owned()) }
    }

    /// Disarms the guard: the task has ended, or another attempt resumes it.
    pub(super) fn leave(mut self) {
        self.task = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (Some(task), Ok(runtime)) = (self.task.take(), Handle::try_current()) else { return };
        let (client, target) = (self.client.clone(), self.target.clone());
        // Nothing waits for the result.
        runtime.spawn(async move { client.call::<Value>(&target, Operation::Cancel, json!({"id": task})).await });
    }
}
