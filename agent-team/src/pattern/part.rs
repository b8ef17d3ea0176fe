//! One part of a pattern: a run that happens once.

use std::sync::Arc;

use agent_core::{Error, ErrorKind, Result, RunEnd, RunRequest, Usage, WhenBusy, WhenWaiting, journal::RunStatus};
use agent_exec::Agent;

use super::{PartEnd, Scope};
use crate::{
    command::{Command, Reply},
    log::{Author, TeamLog},
    mail::Actor,
    member::TurnEnd,
    turn::{Control, TurnOptions, TurnOutcome, answer_text, run as run_turn},
};

/// The team whose members' turns are the parts of a pattern.
pub(crate) struct PartLog {
    pub(crate) log: Arc<TeamLog>,
    pub(crate) options: TurnOptions,
    pub(crate) control: Control,
}

/// Runs an agent on `text` as the part `name` of a pattern. If the agent has a store that has the run
/// already, its end is read, or it is resumed.
///
/// # Errors
/// Those of the run; [`ErrorKind::Interrupted`](agent_core::ErrorKind::Interrupted) with the questions
/// if it waits for answers; [`Finished::complete`](agent_core::Finished::complete) if it ended early.
pub(super) async fn run(agent: &Agent, scope: &Scope, name: String, text: String) -> Result<PartEnd> {
    let part = scope.below(&name);
    if let Some(team) = &scope.team {
        // The session of a part may be nested: its name is that of the member below the team's session.
        let member = part.session.strip_prefix(&**team.log.session()).and_then(|rest| rest.strip_prefix(':'));
        let member = Arc::from(member.unwrap_or(&name));
        return team.run(agent, member, part.run, name, text).await;
    }
    let request = match agent.store() {
        None => new(&part, text),
        Some(store) => {
            let index = store.index(&part.session).await?;
            let found = index.look(|index| {
                let (_, record) = index.run(&part.run)?;
                let history = index.history_after(&part.run).unwrap_or_default();
                let ended = match &record.status {
                    Some(RunStatus::Finished(reason)) => Some(answer_text(reason, &history)),
                    _ => None,
                };
                Some((ended, record.usage))
            });
            match found {
                None => new(&part, text),
                Some((Some(text), usage)) => return Ok(PartEnd { name, text, usage }),
                Some((None, _)) => RunRequest::recover(part.session.clone(), []),
            }
        }
    };
    let request = request.when_busy(WhenBusy::Queue { limit: 1 }).when_waiting(WhenWaiting::Supersede);
    let end: RunEnd = agent.start(request).await?;
    let finished = end.into_result()?.complete()?;
    Ok(PartEnd { name, text: finished.answer, usage: finished.tree_usage })
}

impl PartLog {
    /// Runs a part as a turn of a member. A part that ended before has the same end.
    async fn run(&self, agent: &Agent, member: Arc<str>, run: Arc<str>, name: String, text: String) -> Result<PartEnd> {
        let (log, role) = (&self.log, agent.name().into());
        let author = Author::new(Actor::Team).keyed(format!("part:{run}"));
        let command = Command::BeginPart { member: member.clone(), role, run: run.clone(), text };
        let Reply::Turn(first) = log.submit(author, command).await?? else {
            return Err(Error::config(format!("part '{name}' has the key of another command")));
        };
        // A part that was suspended has answers since.
        let turn = log.look(|state| state.open_turn(&member, &run).cloned()).unwrap_or(*first);
        if turn.is_suspended() {
            return Err(waits());
        }
        let (options, control) = (self.options.clone(), self.control.clone());
        let outcome = run_turn(agent.clone(), log.clone(), member.clone(), turn, options, control).await;
        log.watchers().turn_ended(&member);
        match outcome? {
            TurnOutcome::Ended(end, usage) => {
                let command = Command::EndTurn { member, run, end: end.clone(), usage };
                self.record(command).await?;
                ended(agent, name, end, usage)
            }
            TurnOutcome::Asked { questions, used } => {
                self.record(Command::SuspendTurn { member, run, questions, used }).await?;
                Err(waits())
            }
            TurnOutcome::Left => Err(Error::new(ErrorKind::Interrupted, "the run was suspended")),
        }
    }

    /// Appends a command that may have been superseded: a refusal changes nothing.
    async fn record(&self, command: Command) -> Result<()> {
        self.log.submit(Author::new(Actor::Team), command).await.map(drop)
    }
}

/// The error of a part that waits: the state of the team has its questions.
fn waits() -> Error {
    Error::new(ErrorKind::Interrupted, "a part of the pattern waits for answers")
}

/// The end of a part's run.
fn ended(agent: &Agent, name: String, end: TurnEnd, usage: Usage) -> Result<PartEnd> {
    match end {
        TurnEnd::Finished { reason, text } if reason.is_complete() => Ok(PartEnd { name, text, usage }),
        TurnEnd::Finished { reason, .. } => {
            let message = format!("agent '{}' ended before it was done ({reason})", agent.name());
            Err(Error::tool(message).with_context("exit_reason", reason.to_string()))
        }
        TurnEnd::Failed { error } => Err(Error::tool(error)),
        TurnEnd::Cancelled => Err(Error::new(ErrorKind::Cancelled, "the run was cancelled")),
    }
}

fn new(part: &Scope, text: String) -> RunRequest {
    RunRequest::user(text).session(part.session.clone()).run_id(part.run.clone())
}
