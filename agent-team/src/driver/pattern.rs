//! Drives a run of a team whose course is a pattern.

use std::{pin::pin, sync::Arc, time::Duration};

use agent_core::{ErrorKind, ExitReason, Result, Usage};

use super::{begin, status};
use crate::{
    command::Command,
    end::{TeamEnd, TeamEndReason},
    log::{Author, TeamLog},
    mail::Actor,
    member::TurnEnd,
    pattern::{PartLog, Pattern, PatternEnd, PatternReason, Scope},
    refusal::{RefusalKind, Refused},
    state::TeamState,
    turn::{Control, TurnOptions, is_of_team},
};

/// Runs the pattern to its end, or until it has to be suspended. Parts that ended before are not repeated.
pub(super) async fn drive(
    pattern: Pattern,
    log: Arc<TeamLog>,
    control: Control,
    options: TurnOptions,
) -> Result<TeamEnd> {
    let suspended = match log.look(TeamState::is_open) {
        true => run(&pattern, &log, &control, options).await?,
        false => None,
    };
    if suspended.is_none() {
        let open: Vec<_> = log.look(|state| {
            let open = |member: &crate::Member| Some((member.id.clone(), member.turn.as_ref()?.run.clone()));
            state.members().filter_map(open).collect()
        });
        for (member, run) in open {
            let end = TurnEnd::Cancelled;
            record(&log, Command::EndTurn { member, run, end, usage: Usage::default() }).await?;
        }
    }
    let session = log.session().clone();
    let end = log.look(|state| state.end(&session, suspended.unwrap_or(TeamEndReason::Cancelled)));
    let error = match &end.reason {
        TeamEndReason::Failed(error) => Some(error.as_str()),
        _ => None,
    };
    if !begin::is_ended(&log, &end.run).await? {
        log.record_ended(&end.run, status(&end.reason), error).await?;
    }
    Ok(end)
}

/// Runs the pattern, and records its end. Returns the reason if the run is suspended instead.
async fn run(
    pattern: &Pattern,
    log: &Arc<TeamLog>,
    control: &Control,
    options: TurnOptions,
) -> Result<Option<TeamEndReason>> {
    let (run, text) = log.look(|state| (state.run().cloned().unwrap_or_default(), state.input().to_owned()));
    let parts = Control { cancel: control.cancel.child_token(), pause: control.pause.clone() };
    let team = PartLog { log: log.clone(), options, control: parts.clone() };
    let scope = Scope::new(log.session().clone(), run).of_team(team);
    let mut work = pin!(pattern.run(&scope, text));
    let end = loop {
        let left = log.look(TeamState::deadline).map(|at| Duration::from_millis(at.saturating_sub(log.now())));
        tokio::select! {
            biased;
            end = &mut work => break end,
            () = closed(log), if !parts.cancel.is_cancelled() => parts.cancel.cancel(),
            () = tokio::time::sleep(left.unwrap_or_default()), if left.is_some() && !parts.cancel.is_cancelled() => {
                record(log, Command::End { reason: TeamEndReason::Deadline }).await?;
            }
        }
    };
    if !log.look(TeamState::is_open) {
        return Ok(None);
    }
    let command = match end {
        Ok(end) => completed(end),
        Err(_) if control.requested().is_some() => return Ok(control.requested()),
        Err(_) if log.look(|state| !state.questions().is_empty()) => return Ok(Some(TeamEndReason::Waiting)),
        Err(e) if Refused::of(&e).is_some_and(|refused| refused.kind == RefusalKind::Limit) => {
            Command::End { reason: TeamEndReason::Rounds }
        }
        Err(e) if e.context("exit_reason") == Some(ExitReason::Budget.to_string().as_str()) => {
            Command::End { reason: TeamEndReason::Budget }
        }
        Err(e) if is_of_team(e.kind()) || e.kind() == ErrorKind::Interrupted => return Err(e),
        Err(e) => Command::End { reason: TeamEndReason::Failed(e.message().to_owned()) },
    };
    record(log, command).await?;
    Ok(None)
}

fn completed(end: PatternEnd) -> Command {
    let reason = match end.reason {
        PatternReason::Done => TeamEndReason::Finished,
        PatternReason::Rounds => TeamEndReason::Rounds,
        PatternReason::Stalled => TeamEndReason::Quiescent,
    };
    Command::Complete { reason, text: end.text }
}

/// Waits until the run is over in the journal, for example because the user stopped it.
async fn closed(log: &TeamLog) {
    loop {
        let (seq, mut changes) = (log.seq(), log.changes());
        if !log.look(TeamState::is_open) {
            return;
        }
        let (journal, session) = (log.journal().clone(), log.session().clone());
        let changed = async { changes.wait_for(|newest| *newest > seq).await.is_ok() };
        let is_read = tokio::select! {
            is_changed = changed => is_changed,
            appended = journal.news(&session, seq) => appended.is_ok(),
        };
        // An error of the store ends the part that meets it.
        if !is_read || log.catch_up().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Appends a command that another one may have superseded: a refusal changes nothing.
async fn record(log: &TeamLog, command: Command) -> Result<()> {
    log.submit(Author::new(Actor::Team), command).await.map(drop)
}
