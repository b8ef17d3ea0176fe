//! Delivery of webhooks, with retries.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent::{Retry, SessionId};
use http::{StatusCode, header};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{Hooks, Note};
use crate::{
    app::{App, FoundRun, RunStatus, RunView, names},
    clock::now,
    error::ApiError,
    webhooks::{Hook, HookEvent},
};

/// Event of a run, and its message id.
struct Happened {
    event: HookEvent,
    id: String,
    view: RunView,
}

/// Result of a delivery attempt.
enum Sent {
    Taken,
    /// The receiver rejected the message permanently.
    Refused,
    /// Retry later; after this delay, if the receiver sent one.
    Later(Option<Duration>),
}

impl Happened {
    async fn of(run: &FoundRun) -> Result<Option<Self>, ApiError> {
        Ok(Self::seen(run.view().await?))
    }

    /// Derives the event from the run's view; none if the run is still active.
    fn seen(view: RunView) -> Option<Self> {
        let event = match view.status {
            RunStatus::Finished => HookEvent::Finished,
            RunStatus::Failed => HookEvent::Failed,
            RunStatus::Waiting => HookEvent::Waiting,
            RunStatus::Cancelled => HookEvent::Cancelled,
            _ => return None,
        };
        let ended = view.ended.unwrap_or_default().to_string();
        let id = format!("msg_{}", names::of_key(&[&view.run, &format!("{event:?}"), &ended]));
        Some(Self { event, id, view })
    }
}

impl App {
    /// Delivers the webhooks of a run when it stops in this process.
    pub(in crate::app) fn tell_when_at_rest(&self, run: &FoundRun) {
        if self.0.hooks.is_none() {
            return;
        }
        let (app, run) = (self.clone(), run.clone());
        tokio::spawn(async move {
            run.ended().await;
            if let Err(error) = app.tell(&run).await {
                tracing::warn!(run = run.id(), %error, "webhooks of a run could not be delivered; they are retried when its session is searched");
            }
        });
    }

    /// Delivers the webhooks of a stopped run, if they are not delivered yet. Returns `true` if
    /// there are some, or may still be some that the session will not show: a run that the backend
    /// resumes may become a dead letter.
    pub(super) async fn tell(&self, run: &FoundRun) -> Result<bool, ApiError> {
        let Some(hooks) = &self.0.hooks else { return Ok(false) };
        let notes = self.notes_of(run.store_name(), run.id()).await?;
        let view = run.view().await?;
        let is_over = matches!(view.status, RunStatus::Finished | RunStatus::Cancelled);
        let mut is_left = self.remote().is_some() && !is_over && !notes.is_empty();
        let Some(happened) = Happened::seen(view) else { return Ok(is_left) };
        let untold = notes.into_iter().filter(|(_, note)| note.told.as_ref() != Some(&happened.id));
        for (key, _) in untold {
            is_left = true;
            if hooks.claim(&key) {
                tokio::spawn(self.clone().act_on(hooks.clone(), key, run.clone()));
            }
        }
        Ok(is_left)
    }

    /// Processes a webhook until nothing is left to deliver.
    async fn act_on(self, hooks: Arc<Hooks>, key: String, run: FoundRun) {
        loop {
            if let Err(error) = self.send_all(&hooks, &key, &run).await {
                tracing::warn!(run = run.id(), %error, "the store failed while a webhook was being delivered");
            }
            if hooks.release(&key) {
                return;
            }
        }
    }

    async fn send_all(&self, hooks: &Hooks, key: &str, run: &FoundRun) -> Result<(), ApiError> {
        let mut failures = 0;
        loop {
            // Read again each time: the run may have resumed, or the webhook may have been removed.
            let (Some(happened), Some(note)) = (Happened::of(run).await?, self.note_at(key, run).await?) else {
                return Ok(());
            };
            if note.told.as_ref() == Some(&happened.id) {
                return Ok(());
            }
            let Some(hook) = hooks.teller.secrets.open(&note.sealed) else {
                tracing::warn!(run = run.id(), "a webhook was encrypted with another secret and cannot be delivered");
                return self.note(run.store_name(), BTreeMap::from([(key.to_owned(), None)])).await;
            };
            let sent = match hook.wants(happened.event) {
                true => hooks.send(&hook, run, &happened).await,
                false => Sent::Taken,
            };
            if let Sent::Later(asked) = sent {
                failures += 1;
                if let Some(delay) = hooks.teller.backoff.delay(failures, asked) {
                    tokio::time::sleep(delay).await;
                    continue;
                }
            }
            if !matches!(sent, Sent::Taken) {
                tracing::warn!(run = run.id(), hook = hook.id, event = ?happened.event, "a webhook rejected its message: delivery abandoned");
            }
            if self.note_at(key, run).await?.is_none() {
                return Ok(()); // the session is gone, or the webhook was removed
            }
            // No event follows the end.
            let is_over = happened.event == HookEvent::Finished;
            let told = (!is_over).then(|| json!(Note { sealed: note.sealed, told: Some(happened.id) }));
            self.note(run.store_name(), BTreeMap::from([(key.to_owned(), told)])).await?;
            failures = 0;
        }
    }

    async fn note_at(&self, key: &str, run: &FoundRun) -> Result<Option<Note>, ApiError> {
        Ok(self.notes_of(run.store_name(), run.id()).await?.remove(key))
    }
}

impl Hooks {
    async fn send(&self, hook: &Hook, run: &FoundRun, happened: &Happened) -> Sent {
        let body = match &hook.push {
            Some(push) => (self.task)(&happened.view, push.version),
            None => written(happened),
        };
        let body = body.to_string();
        let tenant = SessionId::parse(run.store_name()).map_or_else(String::new, |id| id.user().to_owned());
        let mut headers = hook.headers();
        headers.extend(self.teller.secrets.headers(&tenant, &happened.id, &body));
        match self.teller.outbound.post(&hook.to.url, headers, body.into()).await {
            Ok(answer) if answer.status().is_success() => Sent::Taken,
            Ok(answer) if answer.status() == StatusCode::GONE => Sent::Refused,
            Ok(answer) => {
                let after =
                    answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                tracing::debug!(
                    run = run.id(),
                    hook = hook.id,
                    status = answer.status().as_u16(),
                    "a webhook rejected its message"
                );
                Sent::Later(after.map(Duration::from_secs))
            }
            Err(error) => {
                tracing::debug!(run = run.id(), hook = hook.id, %error, "a webhook could not be reached");
                match error.retry() {
                    Retry::Temporary(after) => Sent::Later(after),
                    _ => Sent::Refused,
                }
            }
        }
    }
}

/// Formats an event as a Standard Webhooks payload.
fn written(happened: &Happened) -> Value {
    let millis = happened.view.ended.unwrap_or_else(now);
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).ok();
    json!({
        "type": happened.event,
        "timestamp": at.and_then(|at| at.format(&Rfc3339).ok()),
        "data": happened.view,
    })
}
