//! What others than runs note of a session: an object beside the session's own, which a run holds for as long as it is under way.

use std::collections::BTreeMap;

use agent_core::Result;
use futures::future::BoxFuture;
use restate_sdk::{
    endpoint::{ContextInternal, Error as EndpointError},
    errors::HandlerResult,
    serde::Json,
    service::Service,
};
use serde_json::Value;

use crate::{Restate, service::on};

/// What the name of the service of notes ends with, after that of the sessions.
const SUFFIX: &str = "Notes";

/// What the name of a value of the object's state begins with that is a note: each has its own.
const NOTE: &str = "note/";

/// The name of the service that has the notes of this one's sessions.
pub(crate) fn service(sessions: &str) -> String {
    format!("{sessions}{SUFFIX}")
}

/// The notes of a session, as Restate's kit for services calls them.
#[derive(Clone)]
pub(crate) struct NotesObject;

impl Service for NotesObject {
    type Future = BoxFuture<'static, std::result::Result<(), EndpointError>>;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        Box::pin(async move {
            match ctx.handler_name() {
                "note" => on(&ctx, async |notes, _| note(&ctx, notes).await).await,
                "all" => on(&ctx, async |(), _| all(&ctx).await).await,
                unknown => return Err(EndpointError::unknown_handler(ctx.service_name(), unknown)),
            }
            Ok(())
        })
    }
}

async fn note(ctx: &ContextInternal, notes: BTreeMap<String, Option<Value>>) -> HandlerResult<()> {
    for (key, value) in notes {
        let key = format!("{NOTE}{key}");
        match value {
            Some(value) => ctx.set(&key, Json(value)),
            None => ctx.clear(&key),
        }
    }
    Ok(())
}

async fn all(ctx: &ContextInternal) -> HandlerResult<BTreeMap<String, Value>> {
    let mut notes = BTreeMap::new();
    for key in ctx.get_keys().await? {
        let Some(name) = key.strip_prefix(NOTE) else { continue };
        if let Some(Json(value)) = ctx.get(&key).await? {
            notes.insert(name.to_owned(), value);
        }
    }
    Ok(notes)
}

impl Restate {
    /// Notes values of a session by their keys, beside what its runs write there; none takes a key away. They are durable when this returns, also
    /// while a run of the session is under way. For what a server has to know of a session in every process, and no secrets.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the server cannot be reached, or knows no endpoint of the service.
    pub async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<()> {
        self.call_of(&service(self.service()), session, "note", &notes).await
    }

    /// All that is noted of a session.
    ///
    /// # Errors
    /// As [`note`](Self::note).
    pub async fn notes(&self, session: &str) -> Result<BTreeMap<String, Value>> {
        self.call_of(&service(self.service()), session, "all", &()).await
    }
}
