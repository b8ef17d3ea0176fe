//! Drives a run of a team: starts the turns of its members, and ends it.

mod begin;
mod pattern;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use agent_core::{BoxFuture, Budget, ExitReason, Result, Usage, budget::Amounts, journal::RunStatus};
use futures::{StreamExt, stream::FuturesUnordered};
use tokio_util::sync::CancellationToken;

pub(crate) use self::begin::drive;
use crate::{
    command::{Command, Outcome, Reply},
    end::{TeamEnd, TeamEndReason},
    log::{Author, TeamLog},
    mail::Actor,
    member::{Turn, TurnEnd},
    parts::Parts,
    state::TeamState,
    tools::FINISH,
    turn::{Control, TurnOptions, TurnOutcome, run as run_turn},
};

/// A member, the run of its turn, and the outcome.
type Ended = (Arc<str>, Arc<str>, TurnOutcome);

/// Event that resumes a run.
enum Wake {
    Turn(Ended),
    /// Entries may have been appended, or a timer may be due.
    Look,
    /// All members were idle long enough.
    Idle,
}

/// A run of a team in this process.
struct Driver {
    parts: Arc<Parts>,
    log: Arc<TeamLog>,
    control: Control,
    options: TurnOptions,
    turns: FuturesUnordered<BoxFuture<'static, Result<Ended>>>,
    /// Turns whose outcome is not recorded yet.
    ended: VecDeque<Result<Ended>>,
    /// Members whose turns are running here, with the token that cancels them.
    running: Vec<(Arc<str>, CancellationToken)>,
}

impl Driver {
    /// Drives the run to its end, or until it has to be suspended.
    async fn run(mut self) -> Result<TeamEnd> {
        let suspended = loop {
            if !self.log.look(TeamState::is_open) {
                break None;
            }
            if self.end_if_due().await? {
                continue;
            }
            let requested = self.control.requested();
            if requested.is_none() {
                self.begin_turns().await?;
            }
            if self.running.is_empty() {
                if requested.is_some() {
                    break requested;
                }
                if self.log.look(|state| state.is_out_of_rounds() && !state.ready().is_empty()) {
                    self.record(Command::End { reason: TeamEndReason::Rounds }).await?;
                    continue;
                }
                if self.log.look(|state| state.ready().is_empty() && !state.is_idle()) {
                    break Some(TeamEndReason::Waiting);
                }
            }
            self.wait().await?;
        };
        self.close(suspended).await
    }

    /// Ends the run if its deadline passed, and applies the timers that are due.
    async fn end_if_due(&mut self) -> Result<bool> {
        let now = self.log.now();
        let (deadline, timer) = self.log.look(|state| (state.deadline(), state.next_timer()));
        let command = match (deadline, timer) {
            (Some(at), _) if at <= now => Command::End { reason: TeamEndReason::Deadline },
            (_, Some(at)) if at <= now => Command::Tick {},
            _ => return Ok(false),
        };
        self.record(command).await?;
        Ok(true)
    }

    /// Starts the turns of members that have messages, and continues those that an earlier process
    /// began or whose questions were answered.
    async fn begin_turns(&mut self) -> Result<()> {
        let open: Vec<(Arc<str>, Turn)> = self.log.look(|state| {
            let open = state.members().filter_map(|member| Some((member.id.clone(), member.turn.clone()?)));
            open.filter(|(id, turn)| !turn.is_suspended() && !self.is_running(id)).collect()
        });
        for (member, turn) in open {
            if self.has_place() {
                self.drive_turn(member, turn)?;
            }
        }
        for member in self.log.look(TeamState::ready) {
            if !self.has_place() || self.log.look(TeamState::is_out_of_rounds) {
                return Ok(());
            }
            if let Ok(Reply::Turn(turn)) = self.submit(Command::BeginTurn { member: member.clone() }).await? {
                self.drive_turn(member, *turn)?;
            }
        }
        Ok(())
    }

    fn drive_turn(&mut self, member: Arc<str>, turn: Turn) -> Result<()> {
        let role = self.log.look(|state| state.member(&member).map(|member| member.role.clone())).unwrap_or_default();
        let agent = self.parts.agent(&role)?.clone();
        let cancel = self.control.cancel.child_token();
        self.running.push((member.clone(), cancel.clone()));
        let control = Control { cancel, pause: self.control.pause.clone() };
        let (log, options, run) = (self.log.clone(), self.options.clone(), turn.run.clone());
        self.turns.push(Box::pin(async move {
            let outcome = run_turn(agent, log, member.clone(), turn, options, control).await?;
            Ok((member, run, outcome))
        }));
        Ok(())
    }

    fn is_running(&self, member: &str) -> bool {
        self.running.iter().any(|(running, _)| **running == *member)
    }

    fn has_place(&self) -> bool {
        self.parts.concurrency.is_none_or(|most| self.running.len() < most)
    }

    /// Waits for the next event and records it.
    async fn wait(&mut self) -> Result<()> {
        match self.next().await? {
            Wake::Turn(ended) => self.turn_ended(ended, true).await,
            Wake::Look => self.log.catch_up().await,
            Wake::Idle => self.record(Command::Idle {}).await,
        }
    }

    async fn next(&mut self) -> Result<Wake> {
        if let Some(ended) = self.ended.pop_front() {
            return ended.map(Wake::Turn);
        }
        let (seq, mut changes) = (self.log.seq(), self.log.changes());
        let is_idle = self.running.is_empty() && self.log.look(TeamState::is_idle);
        let now = self.log.now();
        let timer = self.log.look(|state| state.deadline().into_iter().chain(state.next_timer()).min());
        let timer = timer.map(|at| Duration::from_millis(at.saturating_sub(now)));
        let requested = self.control.requested();
        let (cancel, pause) = (self.control.cancel.clone(), self.control.pause.clone());
        let (journal, session) = (self.log.journal().clone(), self.log.session().clone());
        tokio::select! {
            biased;
            Some(ended) = self.turns.next() => ended.map(Wake::Turn),
            _ = changes.wait_for(|newest| *newest > seq) => Ok(Wake::Look),
            () = cancel.cancelled(), if requested != Some(TeamEndReason::Cancelled) => Ok(Wake::Look),
            () = pause.cancelled(), if requested.is_none() => Ok(Wake::Look),
            appended = journal.news(&session, seq) => appended.map(|()| Wake::Look),
            () = tokio::time::sleep(timer.unwrap_or_default()), if timer.is_some() => Ok(Wake::Look),
            () = tokio::time::sleep(self.parts.idle_after), if is_idle => Ok(Wake::Idle),
        }
    }

    /// Records the outcome of a turn. A turn that was suspended with the run stays open.
    async fn turn_ended(&mut self, (member, run, outcome): Ended, is_open: bool) -> Result<()> {
        self.running.retain(|(running, _)| *running != member);
        self.log.watchers().turn_ended(&member);
        let command = match outcome {
            TurnOutcome::Ended(end, usage) => {
                let budget = matches!(end, TurnEnd::Finished { reason: ExitReason::Budget, .. });
                let has_budget = self.options.budget.is_some();
                self.record(Command::EndTurn { member, run, end, usage }).await?;
                if !(budget && has_budget && is_open) {
                    return Ok(());
                }
                Command::End { reason: TeamEndReason::Budget }
            }
            TurnOutcome::Asked { questions, used } => Command::SuspendTurn { member, run, questions, used },
            TurnOutcome::Left if is_open => return Ok(()),
            TurnOutcome::Left => Command::EndTurn { member, run, end: TurnEnd::Cancelled, usage: Usage::default() },
        };
        self.record(command).await
    }

    /// Ends the remaining turns if the run has ended, records its end and returns it.
    async fn close(mut self, suspended: Option<TeamEndReason>) -> Result<TeamEnd> {
        if suspended.is_none() {
            self.end_turns().await?;
        }
        let session = self.log.session().clone();
        let end = self.log.look(|state| state.end(&session, suspended.unwrap_or(TeamEndReason::Cancelled)));
        let error = match &end.reason {
            TeamEndReason::Failed(error) => Some(error.as_str()),
            _ => None,
        };
        if !begin::is_ended(&self.log, &end.run).await? {
            self.log.record_ended(&end.run, status(&end.reason), error).await?;
        }
        Ok(end)
    }

    /// Lets the turn that ended the run come to its end, and cancels all others.
    async fn end_turns(&mut self) -> Result<()> {
        let by = self.log.look(|state| state.ended_by().cloned());
        for (_, cancel) in self.running.iter().filter(|(member, _)| Some(member) != by.as_ref()) {
            cancel.cancel();
        }
        let left: Vec<(Arc<str>, Turn)> = self.log.look(|state| {
            let open = state.members().filter_map(|member| Some((member.id.clone(), member.turn.clone()?)));
            open.filter(|(id, _)| !self.is_running(id)).collect()
        });
        for (member, turn) in left {
            if Some(&member) == by.as_ref() {
                self.drive_turn(member, turn)?;
            } else {
                self.turn_ended((member, turn.run, TurnOutcome::Left), false).await?;
            }
        }
        loop {
            let ended = match self.ended.pop_front() {
                Some(ended) => Some(ended),
                None => self.turns.next().await,
            };
            let Some(ended) = ended else { return Ok(()) };
            let (member, run, outcome) = ended?;
            let outcome = match outcome {
                TurnOutcome::Asked { .. } => TurnOutcome::Left, // nobody will answer
                outcome => outcome,
            };
            self.turn_ended((member, run, outcome), false).await?;
        }
    }

    /// Appends a command of the team. The turns make progress meanwhile: one of them may hold what the
    /// store needs, such as a connection.
    async fn submit(&mut self, command: Command) -> Result<Outcome> {
        let log = self.log.clone();
        let mut submitted = std::pin::pin!(log.submit(Author::new(Actor::Team), command));
        loop {
            tokio::select! {
                biased;
                outcome = &mut submitted => return outcome,
                Some(ended) = self.turns.next() => self.ended.push_back(ended),
            }
        }
    }

    /// Appends a command that other commands may have superseded: a refusal changes nothing.
    async fn record(&mut self, command: Command) -> Result<()> {
        self.submit(command).await.map(drop)
    }
}

/// The end of a team's run as the end of a run of its session.
fn status(reason: &TeamEndReason) -> RunStatus {
    match reason {
        TeamEndReason::Finished => RunStatus::Finished(ExitReason::Tool(FINISH.into())),
        TeamEndReason::Deadline => RunStatus::Finished(ExitReason::Deadline),
        TeamEndReason::Budget => RunStatus::Finished(ExitReason::Budget),
        TeamEndReason::Rounds => RunStatus::Finished(ExitReason::StepLimit),
        TeamEndReason::Quiescent | TeamEndReason::Stopped => {
            RunStatus::Finished(ExitReason::Stopped(reason.as_str().into()))
        }
        TeamEndReason::Failed(_) => RunStatus::Failed,
        TeamEndReason::Waiting => RunStatus::Interrupted,
        TeamEndReason::Paused => RunStatus::Paused,
        TeamEndReason::Cancelled => RunStatus::Cancelled,
    }
}

/// The budget of a run: the team's budget, and an account with the caps of the run and what it has used.
fn budget(parts: &Parts, state: &TeamState) -> Option<Budget> {
    let caps: Vec<_> = parts.caps.into_iter().chain(state.caps()).collect();
    if caps.is_empty() {
        return parts.budget.clone();
    }
    let used = state.usage();
    let used = Amounts::none().tokens(used.total()).cost(used.cost).model_calls(used.calls);
    let run = caps.into_iter().fold(Budget::default(), |run, caps| run.child(caps));
    run.count_again(used);
    Some(parts.budget.as_ref().map_or_else(|| run.clone(), |shared| shared.and(&run)))
}
