//! Open questions of runs.

use agent::{
    Question, SessionId,
    journal::{RunQuery, RunSummary},
};
use serde::{Deserialize, Serialize};

use super::{App, names};
use crate::{
    caller::{Caller, Scope},
    error::ApiError,
};

/// Number of runs that are read at once.
const PAGE: usize = 500;

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
    /// Returns all open questions in one session of the caller's tenant, or in all of them, those of
    /// the newest run first.
    ///
    /// # Errors
    /// 403 if the caller lacks the scope; the errors of the store.
    pub async fn waiting(&self, caller: &Caller, session: Option<&str>) -> Result<Vec<Waiting>, ApiError> {
        caller.require(Scope::Read)?;
        let mut query = RunQuery::waiting().limit(PAGE);
        query = query.agents(self.agents(caller).map(|served| served.name().to_owned()));
        query = match session {
            Some(session) => query.session(self.session_id(caller, session).to_string()),
            None => query.prefix(names::prefix(caller.tenant())),
        };
        let mut waiting = Vec::new();
        loop {
            let page = self.journal().runs(&query).await?;
            let Some(last) = page.last() else { return Ok(waiting) };
            let is_last = page.len() < PAGE;
            query = query.before(last);
            waiting.extend(page.into_iter().filter(|run| !self.is_live(run)).flat_map(questions));
            if is_last {
                return Ok(waiting);
            }
        }
    }

    /// True if the run is active in this process.
    pub(super) fn is_live(&self, run: &RunSummary) -> bool {
        let tenant = SessionId::parse(&run.session).map_or_else(String::new, |id| id.user().to_owned());
        self.0.local.find(&tenant, Some(&run.session), &run.run).is_some_and(|live| !live.is_over())
    }
}

fn questions(run: RunSummary) -> impl Iterator<Item = Waiting> {
    let (id, agent) = (run.run.to_string(), run.agent.to_string());
    let session = SessionId::parse(&run.session).map_or_else(|| run.session.clone(), |id| id.session().to_owned());
    run.questions.into_iter().map(move |question| Waiting {
        run: id.clone(),
        agent: agent.clone(),
        session: session.clone(),
        question,
    })
}
