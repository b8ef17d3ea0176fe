//! Sessions of an ACP client: list, resume, close, delete.

use std::collections::BTreeMap;

use agent::{SessionId, journal::SessionQuery};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::{About, Editor, Refusal, lock, read};
use crate::{ApiError, clock::timestamp};

/// Number of sessions per page.
const PAGE: usize = 50;

/// Key of a session's metadata that holds the client's working directory.
const FOLDER: &str = "cwd";

/// Parameters that begin or filter sessions.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wanted {
    cwd: Option<String>,
    cursor: Option<String>,
}

impl Wanted {
    fn read(params: &Value) -> Result<Self, Refusal> {
        if params.is_null() { Ok(Self::default()) } else { read(params) }
    }
}

impl Editor {
    /// Creates a session, of which nothing is stored before its first prompt.
    pub(super) fn begin_session(&self, params: &Value) -> Result<Value, Refusal> {
        let wanted = Wanted::read(params)?;
        let session = agent::run::new_id();
        lock(&self.folders).insert(session.clone(), wanted.cwd.unwrap_or_else(|| "/".to_owned()));
        Ok(json!({ "sessionId": session }))
    }

    /// Stores the working directory of a new session.
    pub(super) async fn store_folder(&self, session: &str) -> Result<(), ApiError> {
        let Some(folder) = lock(&self.folders).remove(session) else { return Ok(()) };
        let id = self.app.session_id(&self.caller, session).to_string();
        self.app.set_metadata(&id, &BTreeMap::from([(FOLDER.to_owned(), folder)])).await
    }

    /// Lists the sessions with this agent, most recently active first.
    pub(super) async fn list_sessions(&self, params: &Value) -> Result<Value, Refusal> {
        let wanted = Wanted::read(params)?;
        let (app, caller) = (&self.app, &self.caller);
        let mut query = SessionQuery::default().prefix(SessionId::new(caller.tenant(), "").to_string()).limit(PAGE);
        query.agents = caller.among(Some(&*self.agent));
        if let Some(folder) = &wanted.cwd {
            query = query.metadata(FOLDER, folder.as_str());
        }
        if let Some(cursor) = &wanted.cursor {
            let invalid = || Refusal::invalid("unknown cursor");
            let (active, name) = cursor.split_once(':').ok_or_else(invalid)?;
            query = query.before(active.parse().map_err(|_| invalid())?, app.session_id(caller, name).to_string());
        }
        let page = app.journal().recent(&query).await.map_err(ApiError::from)?;
        let public = |name: &str| SessionId::parse(name).map_or_else(|| name.to_owned(), |id| id.session().to_owned());
        let mut listed = json!({"sessions": page.iter().map(|one| {
            let folder = one.info.metadata.get(FOLDER).map_or("/", String::as_str);
            let mut told = json!({
                "sessionId": public(&one.session), "cwd": folder, "updatedAt": timestamp(one.info.updated),
            });
            if let Some(title) = &one.info.title {
                told["title"] = title.as_str().into();
            }
            told
        }).collect::<Vec<_>>()});
        if let Some(last) = page.last().filter(|_| page.len() == PAGE) {
            listed["nextCursor"] = format!("{}:{}", last.info.active, public(&last.session)).into();
        }
        Ok(listed)
    }

    /// Continues a session without sending its history.
    pub(super) async fn resume_session(&self, params: &Value) -> Result<Value, Refusal> {
        let About { session_id } = read(params)?;
        self.history(&session_id).await.map(|_| json!({}))
    }

    /// Cancels the active turn of a session. Its history stays.
    pub(super) fn close_session(&self, params: &Value) -> Result<Value, Refusal> {
        let About { session_id } = read(params)?;
        if let Some(turn) = lock(&self.turns).get(&session_id) {
            turn.cancel();
        }
        lock(&self.folders).remove(&session_id);
        Ok(json!({}))
    }

    /// Deletes a session and its history. There may be none.
    pub(super) async fn delete_session(&self, params: &Value) -> Result<Value, Refusal> {
        let About { session_id } = read(params)?;
        if lock(&self.turns).contains_key(&session_id) {
            return Err(Refusal::invalid("the session has an active turn: close it, or wait for its end"));
        }
        lock(&self.folders).remove(&session_id);
        let id = self.app.session_id(&self.caller, &session_id);
        match self.app.delete_session(&id).await {
            Err(error) if error.status().as_u16() != 404 => Err(error.into()),
            _ => Ok(json!({})),
        }
    }
}
