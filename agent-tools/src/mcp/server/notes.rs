//! What a client is told while its call is under way: progress, and what a tool logs.
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

/// How much may wait for a client that reads slowly; more is left out.
const WAITING: usize = 64;

/// How long the answer of a call waits for what was told before it.
const LAST: Duration = Duration::from_secs(1);

pub(super) enum Note {
    Progress(Value),
    Log(LoggingMessageNotificationParam),
}

/// What is told during one call.
pub(super) struct Notes {
    sender: mpsc::Sender<Note>,
    telling: JoinHandle<()>,
    hears_progress: bool,
}

impl Notes {
    /// Progress is told if the client gave a token for it.
    pub(super) fn new(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        let (sender, notes) = mpsc::channel(WAITING);
        let hears_progress = token.is_some();
        Self { sender, telling: tokio::spawn(tell(peer, token, notes)), hears_progress }
    }

    /// Takes notes for as long as the call is under way.
    pub(super) fn taker(&self) -> mpsc::WeakSender<Note> {
        self.sender.downgrade()
    }

    /// Tells of the progress of tools in the run.
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

    /// Waits until the client was told, which is before it has the answer; not for a client that does not read.
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
    // What a tool tells has any form; the protocol wants a number that grows.
    let number = progress["progress"].as_f64().unwrap_or(count);
    let mut note = ProgressNotificationParam::new(token.clone(), number);
    note.total = progress["total"].as_f64();
    let message = progress.get("message").unwrap_or(progress);
    note.message = Some(message.as_str().map_or_else(|| message.to_string(), str::to_owned));
    note
}
