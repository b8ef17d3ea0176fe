//! Start of a job: as a new run, from its checkpoint in the journal, or not at all.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{
    Answer, Checkpoint, Result, RunIds, RunRequest, WhenBusy,
    journal::{Liveness, RunStatus, liveness_of},
    run::{Clock, RunInput},
};
use agent_dispatch::{Claimed, Job, Outcome};

use crate::{Agent, check_answer};

/// Action to take for a job.
pub(super) enum JobStart {
    /// Run this request. The note lists the answers that match none of its questions, in case the
    /// run is suspended again.
    Run(Box<RunRequest>, Option<String>),
    /// Run nothing, and release the job with this outcome.
    Ends(Outcome),
}

impl JobStart {
    /// Determines how to start the job, considering whether its run was cancelled. Starting a run
    /// opens the session's writer, so that a worker that lost the job is refused.
    pub(super) async fn of(agent: &Agent, claimed: &Claimed, is_cancelled: bool) -> Result<Self> {
        let job = &claimed.job;
        let request = Box::new(job.request());
        let Some(journal) = agent.store() else { return Ok(Self::Run(request, None)) };
        let ids = ids_of(agent, job);
        match liveness_of(&**journal, &ids).await? {
            // The run is not repeated, and a deleted session is not recreated.
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
            return Ok(Self::Ends(Outcome::Done)); // it has finished
        };
        // A cancelled run is driven to its end, whatever it waits for.
        let waits = !is_cancelled && matches!(last, Some((run, Some(RunStatus::Interrupted))) if run == job.at.run);
        Ok(Self::going_on(request, &stands, waits, claimed.answers.as_ref()))
    }

    /// Resumes a run with the answers to its open questions: answers delivered by an earlier worker
    /// are in the journal already. An answer that the run would refuse is left out, so that it does
    /// not invalidate the others.
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
        // The queue waits for the session, and holds the signals for the run meanwhile.
        request.when_busy = Some(WhenBusy::Reject);
        Self::Run(request, note)
    }
}

/// True if the journal knows the run of a job, in whatever state.
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

/// Returns the time until the first open question of the run expires. The queue receives a duration
/// instead of an instant, because its clock may differ.
pub(super) fn ends_after(stands: &Checkpoint) -> Option<Duration> {
    let first = stands.questions.iter().filter_map(|question| question.expires).min();
    first.map(|first| Duration::from_millis(first.saturating_sub(Clock::default().now())))
}
