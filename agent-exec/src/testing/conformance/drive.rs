//! Runs that are disturbed at a given await point, and resumed.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use agent_core::{Checkpoint, Error, Finished, Question, RunEnd, RunRequest};
use serde_json::Value;

use crate::Agent;

/// Time within which a cancelled or paused run must end, by the test's clock.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// Time within which an undisturbed run must end.
const ENDS_AT_ALL: Duration = Duration::from_secs(3600);

/// When and how a run is disturbed: after this number of polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Never,
    Cancel(usize),
    Pause(usize),
    Drop(usize),
}

impl Moment {
    fn at(self) -> Option<usize> {
        match self {
            Self::Never => None,
            Self::Cancel(at) | Self::Pause(at) | Self::Drop(at) => Some(at),
        }
    }
}

/// Outcome of a driven run.
pub(super) struct Driven {
    pub(super) finished: Finished,
    /// False if the run ended before it could be disturbed.
    pub(super) disturbed: bool,
}

/// Drives a run to its end, which may take several processes; each has its own agent. Returns a
/// description of the failure otherwise.
pub(super) async fn drive(
    agents: impl Fn() -> Agent,
    request: RunRequest,
    answer: &(dyn Fn(&Question) -> Value + Send + Sync),
    moment: Moment,
) -> Result<Driven, String> {
    let (mut request, mut disturbed, mut moment) = (request, false, moment);
    for _ in 0..100 {
        let (end, now_disturbed) = attempt(&agents(), request, moment).await?;
        disturbed |= now_disturbed;
        moment = if now_disturbed { Moment::Never } else { moment };
        let checkpoint = match end.finished() {
            Ok(finished) => return Ok(Driven { finished, disturbed }),
            Err(checkpoint) => checkpoint,
        };
        let json = checkpoint.to_json().map_err(|e| e.to_string())?;
        let checkpoint = Checkpoint::from_json(&json).map_err(|e| e.to_string())?;
        let answers: Vec<_> = checkpoint.questions.iter().map(|q| (q.id.clone(), answer(q))).collect();
        request = RunRequest::resume(checkpoint, answers);
    }
    Err("it was gone on with a hundred times and did not come to its end".to_owned())
}

/// Drives the run in one process: returns how the run ended, and whether it was disturbed.
async fn attempt(agent: &Agent, request: RunRequest, moment: Moment) -> Result<(RunEnd, bool), String> {
    let run = agent.start(request);
    let handle = run.handle();
    let (mut run, mut polls) = (pin!(run), 0);
    let until_disturbed = poll_fn(|context| {
        if moment.at() == Some(polls) {
            return Poll::Ready(None);
        }
        polls += 1;
        run.as_mut().poll(context).map(Some)
    });
    let failed = |e: Error| format!("the run failed: {e}");
    let stuck = |_| format!("it did not come to its end within {ENDS_AT_ALL:?}");
    if let Some(end) = tokio::time::timeout(ENDS_AT_ALL, until_disturbed).await.map_err(stuck)? {
        return Ok((end.map_err(failed)?, false));
    }
    match moment {
        Moment::Cancel(_) => handle.cancel(),
        Moment::Pause(_) => handle.pause(),
        _ => return Err("dropped".to_owned()),
    }
    let late = |_| format!("it did not end within {ENDS_WITHIN:?} of {moment:?}");
    let end = tokio::time::timeout(ENDS_WITHIN, run).await.map_err(late)?;
    Ok((end.map_err(failed)?, true))
}
