//! Open questions of runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent::{Question, SessionId};
use serde::{Deserialize, Serialize};

use super::{App, found::open};
use crate::{
    caller::{Caller, Scope},
    error::ApiError,
};

/// Number of sessions that are read at once.
const PAGE: usize = 100;
/// Maximum number of sessions in the cache.
const REMEMBERED: usize = 10_000;

/// Open question, and its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Waiting {
    /// Id of the run.
    pub run: String,
    /// Name of the agent.
    pub agent: String,
    /// Session's name, as the client knows it.
    pub session: String,
    /// The question.
    pub question: Question,
}

impl App {
    /// Returns all open questions in one session of the caller's tenant, or in all of them.
    ///
    /// # Errors
    /// 403 if the caller lacks the scope; the errors of the store.
    pub async fn waiting(&self, caller: &Caller, session: Option<&str>) -> Result<Vec<Waiting>, ApiError> {
        caller.require(Scope::Read)?;
        let mut waiting = Vec::new();
        if let Some(session) = session {
            self.waiting_in(caller, &self.session_id(caller, session), &mut waiting).await?;
            return Ok(waiting);
        }
        let (sessions, mut after) = (self.sessions(), None);
        loop {
            let page = sessions.list(caller.tenant(), after.as_ref(), PAGE).await?;
            for id in &page {
                self.waiting_in(caller, id, &mut waiting).await?;
            }
            match page.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(waiting),
            }
        }
    }

    async fn waiting_in(&self, caller: &Caller, id: &SessionId, waiting: &mut Vec<Waiting>) -> Result<(), ApiError> {
        let is_wanted =
            |one: &&Waiting| caller.may_use(&one.agent) && self.0.live.find(&one.run).is_none_or(|run| run.is_over());
        waiting.extend(self.asked_in(id).await?.iter().filter(is_wanted).cloned());
        Ok(())
    }

    /// Returns the open questions of all agents in a session, cached until the session is written
    /// to.
    async fn asked_in(&self, id: &SessionId) -> Result<Arc<Vec<Waiting>>, ApiError> {
        let name = id.to_string();
        let Some(info) = self.journal().info(&name).await? else { return Ok(Arc::default()) };
        if let Some((_, known)) = self.0.waiting.lock().get(&name).filter(|(entries, _)| *entries == info.entries) {
            return Ok(known.clone());
        }
        let index = self.journal().index(&name).await?;
        let mut asked = Vec::new();
        for agent in &self.0.agents.names() {
            let Some(open) = index.look(|index| open(index, agent)) else { continue };
            asked.extend(open.questions.into_iter().map(|question| Waiting {
                run: open.ids.run_id.to_string(),
                agent: agent.clone(),
                session: id.session().to_owned(),
                question,
            }));
        }
        let asked = Arc::new(asked);
        let mut known = self.0.waiting.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(name, (info.entries, asked.clone()));
        Ok(asked)
    }
}

/// Cache of open questions by session name, with the number of entries that the session had.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<Known>);

type Known = HashMap<String, (u64, Arc<Vec<Waiting>>)>;

impl Memo {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
