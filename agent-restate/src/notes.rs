//! Session metadata that is written outside runs: a virtual object beside the session's own, which
//! an active run locks.

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

/// Suffix that turns the name of the session service into the name of the notes service.
const SUFFIX: &str = "Notes";

/// Prefix of the state keys of notes; each note has a key of its own.
const NOTE: &str = "note/";

/// Returns the name of the notes service for this session service.
pub(crate) fn service(sessions: &str) -> String {
    format!("{sessions}{SUFFIX}")
}

/// Virtual object with the notes of a session, as the Restate SDK calls it.
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
    /// Writes notes of a session by key, beside the entries of its runs; `None` removes a key. The
    /// notes are durable when this returns, also while a run of the session is active. Notes hold
    /// what a server must know of a session in every process, and no secrets.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the server cannot be reached or no
    /// endpoint of the service is registered.
    pub async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<()> {
        self.call_of(&service(self.service()), session, "note", &notes).await
    }

    /// Returns all notes of a session.
    ///
    /// # Errors
    /// As [`note`](Self::note).
    pub async fn notes(&self, session: &str) -> Result<BTreeMap<String, Value>> {
        self.call_of(&service(self.service()), session, "all", &()).await
    }
}
