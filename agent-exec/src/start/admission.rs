//! Admission of a run to its session.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result, RunEnd, WhenBusy, journal::JournalWriter, run::RunInput};
use tokio_util::sync::CancellationToken;

use super::{
    AgentParts, Prepared, RunSlot,
    locks::{Queued, SessionGuard},
};
use crate::{engine::KEY, sessions::branch};

/// Outcome of the admission.
pub(super) enum Admission {
    Runs(Admitted),
    /// Another run took the messages, and ended with this result.
    Ended(Result<RunEnd>),
}

/// A run that holds its session's writer, until the writer and the guard are dropped.
pub(super) struct Admitted {
    pub(super) slot: RunSlot,
    pub(super) writer: Arc<dyn JournalWriter>,
    pub(super) guard: Option<SessionGuard>,
}

/// Opens the session. If another run holds it, applies the run's busy policy.
pub(super) async fn admit(agent: &AgentParts, prepared: &Prepared, slot: RunSlot) -> Result<Admission> {
    let options = &prepared.options;
    if let Some(parent) = &options.parent {
        let above = KEY.open(&parent.cx).ok_or_else(another_executors)?;
        let writer = above.log().writer()?; // the tree has one writer
        return Ok(slot.admitted(writer, None));
    }
    let is_new = matches!(prepared.input, RunInput::Messages(_)) && !options.names_session;
    if is_new || agent.journal.is_none() {
        let writer = open(&slot).await?; // no other run knows the session
        return Ok(slot.admitted(writer, None));
    }
    let queued = agent.locks.of(&slot.ids.session, &slot.ids.agent_id);
    match options.when_busy {
        WhenBusy::Queue { limit } => queue(&queued, limit, slot).await,
        WhenBusy::Steer => steer(&queued, &prepared.input, slot).await,
        WhenBusy::Fork => fork(&queued, &prepared.input, slot).await,
        _ => reject(&queued, slot).await,
    }
}

async fn reject(queued: &Queued, slot: RunSlot) -> Result<Admission> {
    let guard = queued.try_acquire(&slot.inbox).ok_or_else(|| busy(&slot))?;
    let writer = open(&slot).await?;
    Ok(slot.admitted(writer, Some(guard)))
}

async fn queue(queued: &Queued, limit: usize, mut slot: RunSlot) -> Result<Admission> {
    let guard = match queued.try_acquire(&slot.inbox) {
        Some(guard) => guard,
        None => {
            let _waiting = queued.wait(limit).ok_or_else(|| {
                busy(&slot).map_message(|m| format!("{m}, and {limit} others wait for it: try again later"))
            })?;
            unless_cancelled(&slot.cancel, async { Ok(queued.acquire(&slot.inbox).await) }).await?
        }
    };
    let writer = open_patiently(&mut slot).await?;
    Ok(slot.admitted(writer, Some(guard)))
}

/// Waits for another process. The turn order there is unknown here, so this polls with exponential
/// backoff.
async fn open_patiently(slot: &mut RunSlot) -> Result<Arc<dyn JournalWriter>> {
    const LONGEST: Duration = Duration::from_millis(500);
    let mut pause = Duration::from_millis(5);
    loop {
        slot.begins_now(); // the wait for its turn does not count
        match open(slot).await {
            Err(e) if e.kind() == ErrorKind::Busy => {
                let pauses = async {
                    tokio::time::sleep(pause).await;
                    Ok(())
                };
                unless_cancelled(&slot.cancel, pauses).await?;
            }
            opened => return opened,
        }
        pause = (pause * 2).min(LONGEST);
    }
}

async fn steer(queued: &Queued, input: &RunInput, mut slot: RunSlot) -> Result<Admission> {
    // A run that resumes from a checkpoint has no messages that another run could take.
    let RunInput::Messages(messages) = input else { return reject(queued, slot).await };
    let guard = loop {
        let running = tokio::select! {
            biased;
            running = queued.running() => running,
            guard = queued.acquire(&slot.inbox) => break guard,
            () = slot.cancel.cancelled() => return Err(cancelled()),
        };
        match running.steer(messages.clone()) {
            Ok(end) => {
                drop(running); // otherwise the dropped run would go unnoticed
                return Ok(Admission::Ended(unless_cancelled(&slot.cancel, end).await));
            }
            // The running run accepts no more messages and is about to end.
            Err(e) if e.kind() == ErrorKind::Stopped => {
                unless_cancelled(&slot.cancel, queued.over(&running)).await?;
            }
            Err(e) => return Err(e),
        }
    };
    let elsewhere = |e: Error| match e.kind() {
        ErrorKind::Busy => {
            e.map_message(|m| format!("{m}, where it cannot be steered: only runs of this agent in this process can"))
        }
        _ => e,
    };
    slot.begins_now();
    let writer = open(&slot).await.map_err(elsewhere)?;
    Ok(slot.admitted(writer, Some(guard)))
}

async fn fork(queued: &Queued, input: &RunInput, slot: RunSlot) -> Result<Admission> {
    if !matches!(input, RunInput::Messages(_)) {
        return reject(queued, slot).await;
    }
    if let Some(guard) = queued.try_acquire(&slot.inbox) {
        match open(&slot).await {
            Err(e) if e.kind() == ErrorKind::Busy => {} // another process holds it
            opened => return Ok(slot.admitted(opened?, Some(guard))),
        }
    }
    let branched = branch(&*slot.journal, &slot.ids.session, &slot.ids.agent_id);
    let (session, writer) = slot.in_time(branched).await?;
    Ok(slot.moved_to(session).admitted(writer, None))
}

impl RunSlot {
    fn admitted(self, writer: Arc<dyn JournalWriter>, guard: Option<SessionGuard>) -> Admission {
        Admission::Runs(Admitted { slot: self, writer, guard })
    }
}

async fn open(slot: &RunSlot) -> Result<Arc<dyn JournalWriter>> {
    slot.in_time(slot.journal.open(&slot.ids.session, &slot.ids.agent_id)).await
}

fn another_executors() -> Error {
    Error::config(
        "the run above is another executor's, so that this agent cannot write into its journal: delegate to it with an \
         executor's own agents, or call it without a parent",
    )
}

fn busy(slot: &RunSlot) -> Error {
    let (session, agent) = (&slot.ids.session, &slot.ids.agent_id);
    Error::new(ErrorKind::Busy, format!("agent '{agent}' already runs in session '{session}'"))
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the run was cancelled while it waited for its session")
}

async fn unless_cancelled<T>(cancel: &CancellationToken, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        done = work => done,
        () = cancel.cancelled() => Err(cancelled()),
    }
}
