//! One turn of a member: a run of its agent, started, resumed or found at its end.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Answer, Budget, Checkpoint, Error, ErrorKind, ExitReason, History, Message, Question, Result, RunEnd, RunRequest,
    Usage, WhenBusy, WhenWaiting,
    journal::{RunRecord, RunStatus},
};
use agent_exec::Agent;
use tokio_util::sync::CancellationToken;

use crate::{
    end::TeamEndReason,
    log::TeamLog,
    member::{LEADER, Turn, TurnEnd, member_session},
    tools::{FINISH, Seat},
};

/// Requests to suspend a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    pub(crate) cancel: CancellationToken,
    pub(crate) pause: CancellationToken,
}

impl Control {
    /// The reason for which the run is to be suspended, if there is one.
    pub(crate) fn requested(&self) -> Option<TeamEndReason> {
        if self.cancel.is_cancelled() {
            return Some(TeamEndReason::Cancelled);
        }
        self.pause.is_cancelled().then_some(TeamEndReason::Paused)
    }
}

/// Options of the requests of all turns.
#[derive(Clone)]
pub(crate) struct TurnOptions {
    pub(crate) budget: Option<Budget>,
    pub(crate) user: Option<Arc<str>>,
    pub(crate) traceparent: Option<Arc<str>>,
    pub(crate) stream: Option<bool>,
    pub(crate) allow_changed: bool,
}

/// Outcome of a turn.
pub(crate) enum TurnOutcome {
    Ended(TurnEnd, Usage),
    /// The run waits for answers. `used` are the questions whose answers it received.
    Asked {
        questions: Vec<Question>,
        used: Vec<String>,
    },
    /// The run was paused or cancelled, and can be resumed.
    Left,
}

/// State of a turn's run according to the member's session.
struct Found {
    record: Option<RunRecord>,
    /// The run's checkpoint, if it can be resumed.
    checkpoint: Option<Checkpoint>,
    /// The conversation after the run.
    history: History,
}

/// Drives the run of a turn to its end. The run is started once: if the member's session has it, it is
/// resumed, or its end is read.
///
/// # Errors
/// The errors of the stores and of the configuration. All other errors of the run are outcomes.
pub(crate) async fn run(
    agent: Agent,
    log: Arc<TeamLog>,
    member: Arc<str>,
    turn: Turn,
    options: TurnOptions,
    control: Control,
) -> Result<TurnOutcome> {
    let session = member_session(log.session(), &member);
    let found = find(&agent, &log, &session, &turn.run).await?;
    if let Some(record) = &found.record {
        match &record.status {
            Some(RunStatus::Finished(reason)) => {
                let text = answer_text(reason, &found.history);
                let end = TurnEnd::Finished { reason: reason.clone(), text };
                return Ok(TurnOutcome::Ended(end, record.usage));
            }
            Some(RunStatus::Failed) => {
                let error = record.error.clone().unwrap_or_else(|| "the run failed".to_owned());
                return Ok(TurnOutcome::Ended(TurnEnd::Failed { error }, record.usage));
            }
            _ => {}
        }
    }
    let (request, used) = match found.record {
        None => {
            let input = match log.look(|state| state.pattern().is_some()) {
                true => turn.plain_input(),
                false => turn.input(*member == *LEADER),
            };
            (RunRequest::new(input).session(session).run_id(turn.run.clone()), Vec::new())
        }
        Some(_) => {
            let answers = answers(&turn, found.checkpoint.as_ref());
            let used = answers.keys().cloned().collect();
            (RunRequest::recover_with(session, answers), used)
        }
    };
    let seat = Seat { log: log.clone(), member: member.clone(), run: turn.run.clone() };
    let request = with_options(request, options).resource(seat);
    let mut run = agent.start(request);
    let handle = run.handle();
    let watched = handle.clone();
    log.watchers().turn_began(&member, move || watched.events());
    let (mut is_cancelled, mut is_paused) = (false, false);
    let end = loop {
        tokio::select! {
            biased;
            end = &mut run => break end,
            () = control.cancel.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                handle.cancel();
            }
            () = control.pause.cancelled(), if !is_paused => {
                is_paused = true;
                handle.pause();
            }
        }
    };
    match end {
        // It was cancelled while its session was opened.
        Err(e) if is_cancelled && e.kind() == ErrorKind::Cancelled => Ok(TurnOutcome::Left),
        end => outcome(end, &turn, used),
    }
}

/// Reads what the member's session has of a run.
async fn find(agent: &Agent, log: &TeamLog, session: &str, run: &str) -> Result<Found> {
    let index = log.journal().index(session).await?;
    Ok(index.look(|index| Found {
        record: index.run(run).map(|(_, record)| record.clone()),
        checkpoint: index.unfinished(agent.name()),
        history: index.history_after(run).unwrap_or_default(),
    }))
}

/// The answers that were given to questions which the run still asks.
fn answers(turn: &Turn, checkpoint: Option<&Checkpoint>) -> BTreeMap<String, Answer> {
    let asked = checkpoint.map(|checkpoint| checkpoint.questions.as_slice()).unwrap_or_default();
    let is_asked = |id: &str| asked.iter().any(|question| question.id == id);
    turn.answers.iter().filter(|(id, _)| is_asked(id)).map(|(id, answer)| (id.clone(), answer.clone())).collect()
}

fn with_options(mut request: RunRequest, options: TurnOptions) -> RunRequest {
    request.budget = options.budget;
    request.user = options.user;
    request.traceparent = options.traceparent;
    request.stream = options.stream;
    request.allow_changed_agent = options.allow_changed;
    // The process that died may hold the member's session until its lease expires.
    request.when_busy(WhenBusy::Queue { limit: 1 }).when_waiting(WhenWaiting::Supersede)
}

fn outcome(end: Result<RunEnd>, turn: &Turn, used: Vec<String>) -> Result<TurnOutcome> {
    Ok(match end {
        Ok(RunEnd::Finished(finished)) => {
            let text = answer_text(&finished.reason, &finished.history);
            let end = TurnEnd::Finished { reason: finished.reason, text };
            TurnOutcome::Ended(end, finished.tree_usage)
        }
        Ok(RunEnd::Interrupted(checkpoint)) => TurnOutcome::Asked { questions: checkpoint.questions, used },
        Ok(_) => TurnOutcome::Left,
        // The run still waits.
        Err(e) if e.kind() == ErrorKind::AnswerRefused => {
            TurnOutcome::Asked { questions: turn.questions.clone(), used }
        }
        Err(e) if e.kind() == ErrorKind::Limit && e.context("budget").is_some() => {
            TurnOutcome::Ended(TurnEnd::Finished { reason: ExitReason::Budget, text: String::new() }, usage(&e))
        }
        Err(e) if is_of_team(e.kind()) => return Err(e),
        Err(e) => TurnOutcome::Ended(TurnEnd::Failed { error: e.message().to_owned() }, usage(&e)),
    })
}

/// True for an error that is no failure of the member: the team's run fails, and can be resumed.
pub(crate) fn is_of_team(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Store | ErrorKind::Busy | ErrorKind::Config | ErrorKind::Stale | ErrorKind::Cancelled)
}

fn usage(e: &Error) -> Usage {
    e.checkpoint().map(|checkpoint| checkpoint.usage).unwrap_or_default()
}

/// Text of the answer of a run that ended for `reason`: the last text of the model, or else the result of the
/// tool that ended the run.
pub(crate) fn answer_text(reason: &ExitReason, history: &History) -> String {
    let text = last_text(history);
    match reason {
        ExitReason::Tool(name) if text.is_empty() && *name != *FINISH => {
            let of_tool = |message: &&Message| matches!(message, Message::Tool(result) if result.name() == &**name);
            history.iter().rev().find(of_tool).map(Message::text).unwrap_or_default()
        }
        _ => text,
    }
}

/// The last text of the model since the last user message.
fn last_text(history: &History) -> String {
    let since = history.iter().rev().take_while(|message| !matches!(message, Message::User(_)));
    let last = since.filter_map(Message::as_assistant).find(|message| message.has_text());
    last.map(agent_core::AssistantMessage::text).unwrap_or_default()
}
