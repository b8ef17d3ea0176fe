//! Guard that cancels a task when its call is dropped.

use serde_json::{Value, json};
use tokio::runtime::Handle;
use url::Url;

use super::client::Client;

/// Cancels the task when dropped, unless the task was [left](Self::leave).
pub(super) struct Guard {
    client: Client,
    endpoint: Url,
    task: Option<String>,
}

impl Guard {
    pub(super) fn new(client: &Client, endpoint: &Url, task: &str) -> Self {
        Self { client: client.clone(), endpoint: endpoint.clone(), task: Some(task.to_owned()) }
    }

    /// Disarms the guard: the task has ended, or another attempt resumes it.
    pub(super) fn leave(mut self) {
        self.task = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (Some(task), Ok(runtime)) = (self.task.take(), Handle::try_current()) else { return };
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        // Nothing waits for the result.
        runtime.spawn(async move { client.call::<Value>(&endpoint, "tasks/cancel", json!({"id": task})).await });
    }
}
