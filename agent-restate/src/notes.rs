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

/// Where the notes of a session stand in the object's state.
const NOTES: &str = "notes";

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
    let mut kept = all(ctx).await?;
    for (key, value) in notes {
        match value {
            Some(value) => _ = kept.insert(key, value),
            None => _ = kept.remove(&key),
        }
    }
    match kept.is_empty() {
        true => ctx.clear(NOTES),
        false => ctx.set(NOTES, Json(kept)),
    }
    Ok(())
}

async fn all(ctx: &ContextInternal) -> HandlerResult<BTreeMap<String, Value>> {
    Ok(ctx.get::<Json<_>>(NOTES).await?.map(Json::into_inner).unwrap_or_default())
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
