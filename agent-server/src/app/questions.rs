//! What runs wait for.

use agent::{Question, SessionId};
use serde::{Deserialize, Serialize};

use super::App;
use crate::{
    caller::{Caller, Scope},
    error::ApiError,
};

/// Sessions that are looked at in one go.
const PAGE: usize = 100;

/// A question that waits, and the run that asks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Waiting {
    /// The run.
    pub run: String,
    /// Its agent.
    pub agent: String,
    /// Its session, as the client names it.
    pub session: String,
    /// What is asked.
    pub question: Question,
}

impl App {
    /// All questions that wait for an answer, in one session of the caller's tenant or in all of them.
    ///
    /// # Errors
    /// 403 if the caller may not look; those of the store.
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
        let index = self.journal().index(&id.to_string()).await?;
        for agent in self.agents(caller) {
            let Some(open) = index.look(|index| index.unfinished(agent.name())) else { continue };
            let of_run = |question: Question| Waiting {
                run: open.ids.run_id.to_string(),
                agent: agent.name().to_owned(),
                session: id.session().to_owned(),
                question,
            };
            let is_live = self.0.live.find(&open.ids.run_id).is_some_and(|run| !run.is_over());
            waiting.extend(open.questions.clone().into_iter().filter(|_| !is_live).map(of_run));
        }
        Ok(())
    }
}
