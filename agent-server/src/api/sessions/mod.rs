//! `/api/sessions`: what was said, and going back to it.

mod edit;
mod export;
mod list;
mod read;

use std::sync::Arc;

use agent::{SessionId, journal::SessionInfo};
use axum::Router;
use serde::Deserialize;

use crate::{app::App, caller::Caller, error::ApiError};

pub(super) fn router() -> Router<App> {
    Router::new().merge(list::router()).merge(read::router()).merge(edit::router()).merge(export::router())
}

/// Whose side of a session is meant; the first agent's that came if nobody says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Side {
    agent: Option<String>,
}

/// A session that is there, and the agent whose side of it is meant.
struct Found {
    id: SessionId,
    info: SessionInfo,
    agent: Arc<str>,
}

impl Found {
    /// The session of this name, if the caller's tenant has it.
    async fn new(app: &App, caller: &Caller, name: &str, agent: Option<&str>) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found(format!("there is no session '{name}'"));
        let id = app.session_id(caller, name);
        let info = app.journal().info(&id.to_string()).await?.ok_or_else(unknown)?;
        let agents = info.agents.iter().filter(|agent| caller.may_use(agent));
        let agent = match agent {
            Some(named) => agents.clone().find(|agent| ***agent == *named).ok_or_else(|| {
                let message = format!("agent '{named}' has no side of session '{name}'");
                ApiError::not_found(message)
            })?,
            None => agents.clone().next().ok_or_else(unknown)?,
        };
        Ok(Self { id, agent: agent.clone(), info })
    }

    /// As [`new`](Self::new), of all its agents' sides: for who may use each of them.
    async fn whole(app: &App, caller: &Caller, name: &str) -> Result<Self, ApiError> {
        let found = Self::new(app, caller, name, None).await?;
        match found.info.agents.iter().find(|agent| !caller.may_use(agent)) {
            Some(other) => {
                let message = format!("the session is of agent '{other}', too, which the key may not use");
                Err(ApiError::forbidden(message))
            }
            None => Ok(found),
        }
    }

    /// The session's name in the store.
    fn store_name(&self) -> String {
        self.id.to_string()
    }
}

/// The text of JSON in which a session and the users of its runs are called as the client knows them.
fn renamed(json: &str, id: &SessionId) -> String {
    let named = |field: &str, name: &str| format!("\"{field}\":{}", serde_json::Value::from(name));
    let text = json.replace(&named("session", &id.to_string()), &named("session", id.session()));
    // A user is named as a session is: the tenant, and then who it is.
    let prefix = SessionId::new(id.user(), "").to_string();
    text.replace(&format!("\"user\":\"{prefix}"), "\"user\":\"")
}
