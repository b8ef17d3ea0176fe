//! Where a job begins: anew, where its run stands in the journal, or not at all.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{
    Answer, Checkpoint, Result, RunIds, RunRequest, WhenBusy,
    dispatch::{Claimed, Job, Outcome},
    journal::{Liveness, RunStatus, liveness_of},
    run::{Clock, RunInput},
};

use crate::{Agent, check_answer};

/// What is to be done with a job.
pub(super) enum Beginning {
    /// This is to be run. The note says which of the answers are none to its questions, if it comes to rest again.
    Run(Box<RunRequest>, Option<String>),
    /// Nothing.
    Ends(Outcome),
}

impl Beginning {
    /// Where the job begins, whose run was cancelled or not. Whoever runs something is the session's writer then, and is refused if it was too late.
    pub(super) async fn of(agent: &Agent, claimed: &Claimed, is_cancelled: bool) -> Result<Self> {
        let job = &claimed.job;
        let request = Box::new(job.request());
        let Some(journal) = agent.store() else { return Ok(Self::Run(request, None)) };
        let ids = ids_of(agent, job);
        match liveness_of(&**journal, &ids).await? {
            // Nothing of it happens again, and nothing of what was deleted comes back.
            Liveness::Unknown if claimed.stands => {
                return Ok(Self::Ends(deleted()));
            }
            Liveness::Unknown => return Ok(Self::Run(request, None)),
            Liveness::Over(_) => return Ok(Self::Ends(Outcome::Done)),
            _ => {}
        }
        let index = journal.index(&job.at.session).await?;
        let (stands, last) = index.look(|index| (index.unfinished(&ids.agent_id), index.view(&ids.agent_id).last_run));
        let Some(stands) = stands.filter(|stands| stands.ids.run_id == job.at.run) else {
            return Ok(Self::Ends(Outcome::Done)); // it finished
        };
        // One that is cancelled ends where it is driven, whatever it waits for.
        let waits = !is_cancelled && matches!(last, Some((run, Some(RunStatus::Interrupted))) if run == job.at.run);
        Ok(Self::going_on(request, &stands, waits, claimed.answers.as_ref()))
    }

    /// Goes on with a run with the answers that it still waits for: those that an earlier worker gave it are in the journal. An answer that the run would
    /// refuse is left out, so that it takes none of the others with it.
    fn going_on(
        mut request: Box<RunRequest>,
        stands: &Checkpoint,
        waits: bool,
        given: Option<&BTreeMap<String, Answer>>,
    ) -> Self {
        let is_open =
            |id: &str| stands.questions.iter().any(|question| question.id == id) && !stands.answers.contains_key(id);
        let (mut answers, mut refused) = (BTreeMap::new(), Vec::new());
        for (id, answer) in given.into_iter().flatten().filter(|(id, _)| is_open(id)) {
            match check_answer(stands, id, answer) {
                Ok(()) => drop(answers.insert(id.clone(), answer.clone())),
                Err(e) => refused.push(e.to_string()),
            }
        }
        let note = Some(refused.join("; ")).filter(|note| !note.is_empty());
        let after = ends_after(stands);
        let is_over = after == Some(Duration::ZERO);
        if waits && answers.is_empty() && !is_over && stands.questions.iter().any(|question| is_open(&question.id)) {
            return Self::Ends(Outcome::AtRest { after, note });
        }
        request.input = RunInput::Recover { answers };
        // The queue waits for the session, and for what the run is told meanwhile.
        request.when_busy = Some(WhenBusy::Reject);
        Self::Run(request, note)
    }
}

/// True if the run of a job stands in the journal, in whatever state.
pub(super) async fn stands(agent: &Agent, job: &Job) -> Result<bool> {
    let Some(journal) = agent.store() else { return Ok(false) };
    Ok(liveness_of(&**journal, &ids_of(agent, job)).await? != Liveness::Unknown)
}

fn ids_of(agent: &Agent, job: &Job) -> RunIds {
    let mut ids = RunIds::root(agent.name(), job.at.session.clone());
    (ids.run_id, ids.root_run_id) = (job.at.run.clone(), job.at.run.clone());
    if let Some(agent_id) = &job.agent_id {
        ids.agent_id = agent_id.clone();
    }
    ids
}

fn deleted() -> Outcome {
    Outcome::Dead {
        error: "its session was deleted after it had begun: send a new run, if it is to be done again".to_owned(),
    }
}

/// After which time the first of the questions ends that a run waits for. The queue is told that, and not when: its clock may be another one.
pub(super) fn ends_after(stands: &Checkpoint) -> Option<Duration> {
    let first = stands.questions.iter().filter_map(|question| question.expires).min();
    first.map(|first| Duration::from_millis(first.saturating_sub(Clock::default().now())))
}
