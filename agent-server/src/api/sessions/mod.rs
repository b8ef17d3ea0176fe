//! Routes below `/api/sessions`: history of sessions and changes to it.

mod edit;
mod export;
mod list;
mod public;
mod read;

use std::sync::Arc;

use agent::{SessionId, journal::SessionInfo};
use axum::Router;
use serde::Deserialize;

use crate::{app::App, caller::Caller, error::ApiError};

pub(super) fn router() -> Router<App> {
    Router::new().merge(list::router()).merge(read::router()).merge(edit::router()).merge(export::router())
}

/// Query with the agent whose conversation is meant; the session's first agent if not set.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Side {
    agent: Option<String>,
}

/// Existing session, and the agent whose conversation is meant.
struct Found {
    id: SessionId,
    info: SessionInfo,
    agent: Arc<str>,
}

impl Found {
    /// Finds the session of this name in the caller's tenant.
    async fn new(app: &App, caller: &Caller, name: &str, agent: Option<&str>) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found(format!("unknown session '{name}'"));
        let id = app.session_id(caller, name);
        let info = app.journal().info(&id.to_string()).await?.ok_or_else(unknown)?;
        let agents = info.agents.iter().filter(|agent| caller.may_use(agent));
        let agent = match agent {
            Some(named) => agents.clone().find(|agent| ***agent == *named).ok_or_else(|| {
                let message = format!("agent '{named}' did not take part in session '{name}'");
                ApiError::not_found(message)
            })?,
            None => agents.clone().next().ok_or_else(unknown)?,
        };
        Ok(Self { id, agent: agent.clone(), info })
    }

    /// Like [`new`](Self::new), for all agents of the session; the caller must have access to each
    /// of them.
    async fn whole(app: &App, caller: &Caller, name: &str) -> Result<Self, ApiError> {
        let found = Self::new(app, caller, name, None).await?;
        match found.info.agents.iter().find(|agent| !caller.may_use(agent)) {
            Some(other) => {
                let message = format!("the session also belongs to agent '{other}', which this key must not use");
                Err(ApiError::forbidden(message))
            }
            None => Ok(found),
        }
    }

    /// Returns the session's name in the store.
    fn store_name(&self) -> String {
        self.id.to_string()
    }
}
