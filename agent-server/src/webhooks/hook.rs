//! Who is told of a run, and of what.

use std::fmt;

use http::{HeaderMap, HeaderValue, header};
use serde::{Deserialize, Serialize};

/// What becomes of a run, as far as programs elsewhere are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HookEvent {
    /// It is done.
    #[serde(rename = "run.finished")]
    Finished,
    /// It failed.
    #[serde(rename = "run.failed")]
    Failed,
    /// It waits for answers.
    #[serde(rename = "run.waiting")]
    Waiting,
    /// It was cancelled.
    #[serde(rename = "run.cancelled")]
    Cancelled,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Finished, Self::Failed, Self::Waiting, Self::Cancelled];
}

/// An address that is told what becomes of a run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Webhook {
    /// The address: `https://..`, or `http://..`.
    pub url: String,
    /// What it is told; everything if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<HookEvent>>,
}

impl Webhook {
    /// An address that is told everything.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), events: None }
    }

    /// Sets what it is told.
    #[must_use]
    pub fn events(mut self, events: impl IntoIterator<Item = HookEvent>) -> Self {
        self.events = Some(events.into_iter().collect());
        self
    }
}

impl fmt::Debug for Webhook {
    // An address may have a secret in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("events", &self.events).finish_non_exhaustive()
    }
}

/// A webhook of one run, by its id, perhaps one of Agent2Agent's.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hook {
    pub(crate) id: String,
    pub(crate) to: Webhook,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) push: Option<Push>,
}

/// How Agent2Agent has a push notification known.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Push {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) authentication: Option<Authentication>,
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

    /// True if it is told this.
    pub(crate) fn wants(&self, event: HookEvent) -> bool {
        self.to.events.as_ref().is_none_or(|events| events.contains(&event))
    }

    /// What the receiver knows the sender by, beside the signature.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let Some(push) = &self.push else { return headers };
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
