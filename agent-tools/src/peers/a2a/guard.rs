//! A task that is cancelled when nobody follows it any more.

use serde_json::{Value, json};
use tokio::runtime::Handle;
use url::Url;

use super::client::Client;

/// Cancels the task at its agent when it is dropped, unless the task is [left](Self::leave).
pub(super) struct Guard {
    client: Client,
    endpoint: Url,
    task: Option<String>,
}

impl Guard {
    pub(super) fn new(client: &Client, endpoint: &Url, task: &str) -> Self {
        Self { client: client.clone(), endpoint: endpoint.clone(), task: Some(task.to_owned()) }
    }

    /// Leaves the task as it is: it is over, or somebody goes on with it.
    pub(super) fn leave(mut self) {
        self.task = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (Some(task), Ok(runtime)) = (self.task.take(), Handle::try_current()) else { return };
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        // Whether it worked, nobody is there to hear.
        runtime.spawn(async move { client.call::<Value>(&endpoint, "tasks/cancel", json!({"id": task})).await });
    }
}
