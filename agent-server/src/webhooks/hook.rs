//! Webhooks and their events.

use std::fmt;

use http::{HeaderMap, HeaderValue, header};
use serde::{Deserialize, Serialize};

use super::Version;

/// Event of a run that webhooks receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HookEvent {
    /// The run finished.
    #[serde(rename = "run.finished")]
    Finished,
    /// The run failed.
    #[serde(rename = "run.failed")]
    Failed,
    /// The run waits for answers.
    #[serde(rename = "run.waiting")]
    Waiting,
    /// The run was cancelled.
    #[serde(rename = "run.cancelled")]
    Cancelled,
}

impl HookEvent {
    /// All events.
    pub const ALL: [Self; 4] = [Self::Finished, Self::Failed, Self::Waiting, Self::Cancelled];
}

/// URL that receives the events of a run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Webhook {
    /// URL: `https://..` or `http://..`.
    pub url: String,
    /// Events to send; all if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<HookEvent>>,
}

impl Webhook {
    /// Creates a webhook for all events.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), events: None }
    }

    /// Sets the events to send.
    #[must_use]
    pub fn events(mut self, events: impl IntoIterator<Item = HookEvent>) -> Self {
        self.events = Some(events.into_iter().collect());
        self
    }
}

impl fmt::Debug for Webhook {
    // The URL may contain a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("events", &self.events).finish_non_exhaustive()
    }
}

/// Webhook of one run with its id; possibly a push notification of Agent2Agent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hook {
    pub(crate) id: String,
    pub(crate) to: Webhook,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) push: Option<Push>,
}

/// Authentication of an Agent2Agent push notification.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Push {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) authentication: Option<Authentication>,
    /// Version of the protocol in which the notification is written.
    #[serde(default)]
    pub(crate) version: Version,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Authentication {
    #[serde(default)]
    pub(crate) schemes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credentials: Option<String>,
}

impl Hook {
    pub(crate) fn of(id: impl Into<String>, to: Webhook) -> Self {
        Self { id: id.into(), to, push: None }
    }

    /// True if the webhook receives this event.
    pub(crate) fn wants(&self, event: HookEvent) -> bool {
        self.to.events.as_ref().is_none_or(|events| events.contains(&event))
    }

    /// Returns the headers that authenticate the sender, beside the signature.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let Some(push) = &self.push else { return headers };
        if push.version == Version::V10 {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/a2a+json"));
        }
        let secret = |text: &str| {
            let mut value = HeaderValue::from_str(text).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        if let Some(token) = push.token.as_deref().and_then(secret) {
            headers.insert("x-a2a-notification-token", token);
        }
        let said =
            push.authentication.as_ref().and_then(|said| Some((said.schemes.first()?, said.credentials.as_ref()?)));
        if let Some(value) = said.and_then(|(scheme, credentials)| secret(&format!("{scheme} {credentials}"))) {
            headers.insert(header::AUTHORIZATION, value);
        }
        headers
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").field("id", &self.id).field("to", &self.to).finish_non_exhaustive()
    }
}
