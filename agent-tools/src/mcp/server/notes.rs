//! Notifications during a call: progress and log messages.
#![expect(deprecated, reason = "logging is on its way out of the protocol, and clients have it")]

use std::{sync::Arc, time::Duration};

use agent_core::{Event, EventKind, RunCx};
use rmcp::{
    RoleServer,
    model::{LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinHandle};

/// Maximum of notifications queued for a client that reads slowly; more are dropped.
const WAITING: usize = 64;

/// Time that the response of a call waits for earlier notifications.
const LAST: Duration = Duration::from_secs(1);

pub(super) enum Note {
    Progress(Value),
    Log(LoggingMessageNotificationParam),
}

/// Notification queue of one call.
pub(super) struct Notes {
    sender: mpsc::Sender<Note>,
    telling: JoinHandle<()>,
    hears_progress: bool,
}

impl Notes {
    /// Creates the queue. Progress is sent only if the client gave a token for it.
    pub(super) fn new(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        let (sender, notes) = mpsc::channel(WAITING);
        let hears_progress = token.is_some();
        Self { sender, telling: tokio::spawn(tell(peer, token, notes)), hears_progress }
    }

    /// Returns a sender that works while the call runs.
    pub(super) fn taker(&self) -> mpsc::WeakSender<Note> {
        self.sender.downgrade()
    }

    /// Forwards the progress of tools in the run.
    pub(super) fn watch(&self, cx: &RunCx) {
        if !self.hears_progress {
            return;
        }
        let notes = self.taker();
        cx.attach(Arc::new(move |event: &Event| {
            if let (EventKind::ToolProgress { progress, .. }, Some(notes)) = (&event.kind, notes.upgrade()) {
                let _ = notes.try_send(Note::Progress(progress.clone()));
            }
        }));
    }

    /// Waits until the queue is sent, so that notifications precede the response; gives a client
    /// that does not read a limited time.
    pub(super) async fn finish(self) {
        drop(self.sender);
        let _ = tokio::time::timeout(LAST, self.telling).await;
    }
}

async fn tell(peer: Peer<RoleServer>, token: Option<ProgressToken>, mut notes: mpsc::Receiver<Note>) {
    let mut count = 0.0;
    while let Some(note) = notes.recv().await {
        let told = match (note, &token) {
            (Note::Log(log), _) => peer.notify_logging_message(log).await,
            (Note::Progress(progress), Some(token)) => {
                count += 1.0;
                peer.notify_progress(of_progress(token, &progress, count)).await
            }
            (Note::Progress(_), None) => Ok(()),
        };
        if told.is_err() {
            return;
        }
    }
}

fn of_progress(token: &ProgressToken, progress: &Value, count: f64) -> ProgressNotificationParam {
    // Progress of tools has any form; the protocol requires an increasing number.
    let number = progress["progress"].as_f64().unwrap_or(count);
    let mut note = ProgressNotificationParam::new(token.clone(), number);
    note.total = progress["total"].as_f64();
    let message = progress.get("message").unwrap_or(progress);
    note.message = Some(message.as_str().map_or_else(|| message.to_string(), str::to_owned));
    note
}
