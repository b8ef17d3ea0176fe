//! Opens the session of a team and starts or resumes its run.

use std::{collections::VecDeque, sync::Arc};

use agent_core::{Error, Result, journal::RunStatus, run::new_id};
use futures::stream::FuturesUnordered;

use super::{Control, Driver, TurnOptions, budget, pattern};
use crate::{
    command::Command,
    end::TeamEnd,
    event::Watchers,
    log::{Author, TeamLog},
    mail::Actor,
    member::LEADER,
    parts::{Parts, Plan},
    request::TeamRequest,
};

/// Drives a request to the end of its run.
pub(crate) async fn drive(
    parts: Arc<Parts>,
    session: Arc<str>,
    request: TeamRequest,
    control: Control,
    watchers: Watchers,
) -> Result<TeamEnd> {
    let log = parts.open_driver(&session, watchers).await?;
    begin(&parts, &log, &request).await?;
    let options = TurnOptions {
        budget: match (log.look(|state| budget(&parts, state)), request.budget) {
            (Some(own), Some(callers)) => Some(own.and(&callers)),
            (own, callers) => own.or(callers),
        },
        user: request.user,
        traceparent: request.traceparent.or_else(|| log.look(|state| state.run().map(|run| trace_of(run)))),
        stream: request.stream,
        allow_changed: request.allow_changed_agents,
    };
    if let Plan::Pattern(plan) = &parts.plan {
        return Box::pin(pattern::drive(plan.clone(), log, control, options)).await;
    }
    let (turns, ended) = (FuturesUnordered::new(), VecDeque::new());
    let driver = Driver { parts, log, control, options, turns, ended, running: Vec::new() };
    Box::pin(driver.run()).await
}

/// Trace context of a team's run without a caller's: the same in every process, so that the runs of all
/// members belong to one trace.
fn trace_of(run: &str) -> Arc<str> {
    let hash = |seed: u128| {
        let mix = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        run.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d ^ seed, mix)
    };
    // Ids of zero are invalid.
    let (trace, span) = (hash(0) | 1, hash(1) as u64 | 1);
    format!("00-{trace:032x}-{span:016x}-01").into()
}

/// Starts a run, or continues the open one with the messages and answers of the request.
async fn begin(parts: &Parts, log: &TeamLog, request: &TeamRequest) -> Result<()> {
    let (newest, is_open) = log.look(|state| (state.run().cloned(), state.is_open()));
    let is_same =
        newest.is_some() && (request.run_id == newest || (request.run_id.is_none() && request.messages.is_empty()));
    match newest {
        // A repeated request, or one that resumes.
        Some(run) if is_same => {
            if is_open {
                log.record_resumed(&run).await?;
            }
        }
        Some(run) if is_open && matches!(parts.plan, Plan::Pattern(_)) => {
            return Err(Error::config(format!(
                "run '{run}' of team '{}' is open, and a pattern takes no further messages: resume it, or stop it first",
                parts.name
            )));
        }
        Some(run) if is_open => {
            log.record_resumed(&run).await?;
            let id = request.run_id.clone().unwrap_or_else(|| new_id().into());
            for (at, parts) in request.messages.iter().enumerate() {
                let author = Author::new(Actor::User).keyed(format!("request:{id}/{at}"));
                log.submit(author, Command::Message { to: LEADER.into(), parts: parts.clone() }).await??;
            }
        }
        _ if request.messages.is_empty() => {
            let session = log.session();
            return Err(Error::config(format!("session '{session}' has no run of team '{}' to resume", parts.name)));
        }
        _ => {
            let run = request.run_id.clone().unwrap_or_else(|| new_id().into());
            let (mut settings, messages) = (parts.settings.clone(), request.messages.clone());
            settings.caps = request.caps;
            log.submit(Author::new(Actor::User), Command::Start { run, settings, messages }).await??;
        }
    }
    for (member, question, answer) in &request.answers {
        let (member, question, answer) = (member.clone(), question.clone(), answer.clone());
        log.submit(Author::new(Actor::User), Command::Answer { member, question, answer }).await??;
    }
    Ok(())
}

/// True if the session's record of the run says that it ended.
pub(super) async fn is_ended(log: &TeamLog, run: &str) -> Result<bool> {
    let index = log.journal().index(log.session()).await?;
    let status = index.look(|index| index.run(run).and_then(|(_, record)| record.status.clone()));
    Ok(matches!(status, Some(RunStatus::Finished(_) | RunStatus::Failed)))
}
