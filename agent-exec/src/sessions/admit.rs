//! How a run comes to its session, or does not.

use std::{sync::Arc, time::Duration};

use agent_core::{
    Error, ErrorKind, Message, Result, RunEnd, RunRequest, WhenBusy, journal::JournalWriter, run::RunInput,
};
use tokio_util::sync::CancellationToken;

use super::{
    branch::branch,
    locks::{Queued, SessionGuard},
};
use crate::{agent::Inner, start::RunSlot};

/// What becomes of a run at the top.
pub(crate) enum Admission {
    /// It is its session's writer, until both are dropped.
    Runs { writer: Arc<dyn JournalWriter>, guard: Option<SessionGuard> },
    /// Another run took its messages, and ended so.
    Ended(Result<RunEnd>),
}

/// Opens the session, as the policy says if another run holds it.
pub(crate) async fn admit(agent: &Inner, request: &mut RunRequest, slot: &mut RunSlot) -> Result<Admission> {
    let is_new = matches!(request.input, RunInput::Messages(_)) && request.session.is_none();
    if is_new || agent.journal.is_none() {
        return Ok(Admission::Runs { writer: open(slot).await?, guard: None }); // nobody else knows the session
    }
    let queued = agent.locks.of(&slot.ids.session, &slot.ids.agent_id);
    match request.when_busy.unwrap_or(agent.when_busy) {
        WhenBusy::Queue { limit } => queue(&queued, limit, slot).await,
        WhenBusy::Steer => steer(&queued, request, slot).await,
        WhenBusy::Fork => fork(&queued, request, slot).await,
        _ => {
            let guard = queued.try_acquire(&slot.inbox).ok_or_else(|| busy(slot))?;
            Ok(Admission::Runs { writer: open(slot).await?, guard: Some(guard) })
        }
    }
}

async fn queue(queued: &Queued, limit: usize, slot: &RunSlot) -> Result<Admission> {
    let guard = match queued.try_acquire(&slot.inbox) {
        Some(guard) => guard,
        None => {
            let _waiting = queued.wait(limit).ok_or_else(|| {
                busy(slot).map_message(|m| format!("{m}, and {limit} others wait for it: try again later"))
            })?;
            unless_cancelled(&slot.cancel, async { Ok(queued.acquire(&slot.inbox).await) }).await?
        }
    };
    let writer = unless_cancelled(&slot.cancel, open_patiently(slot)).await?;
    Ok(Admission::Runs { writer, guard: Some(guard) })
}

/// Waits for another process. Whose turn it is there nobody here can know, so it is asked again and again.
async fn open_patiently(slot: &RunSlot) -> Result<Arc<dyn JournalWriter>> {
    const LONGEST: Duration = Duration::from_millis(500);
    let mut pause = Duration::from_millis(5);
    loop {
        match open(slot).await {
            Err(e) if e.kind() == ErrorKind::Busy => tokio::time::sleep(pause).await,
            opened => return opened,
        }
        pause = (pause * 2).min(LONGEST);
    }
}

async fn steer(queued: &Queued, request: &RunRequest, slot: &RunSlot) -> Result<Admission> {
    let Some(messages) = new_messages(request) else {
        let guard = queued.try_acquire(&slot.inbox).ok_or_else(|| busy(slot))?;
        return Ok(Admission::Runs { writer: open(slot).await?, guard: Some(guard) });
    };
    let guard = loop {
        let running = tokio::select! {
            biased;
            running = queued.running() => running,
            guard = queued.acquire(&slot.inbox) => break guard,
            () = slot.cancel.cancelled() => return Err(cancelled()),
        };
        match running.steer(messages.to_vec()) {
            Ok(end) => {
                drop(running); // or nobody would notice that the run was dropped
                return Ok(Admission::Ended(unless_cancelled(&slot.cancel, end).await));
            }
            // It takes no more, and is about to end.
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
    Ok(Admission::Runs { writer: open(slot).await.map_err(elsewhere)?, guard: Some(guard) })
}

async fn fork(queued: &Queued, request: &RunRequest, slot: &mut RunSlot) -> Result<Admission> {
    if let Some(guard) = queued.try_acquire(&slot.inbox) {
        match open(slot).await {
            Err(e) if e.kind() == ErrorKind::Busy && new_messages(request).is_some() => {} // another process has it
            opened => return Ok(Admission::Runs { writer: opened?, guard: Some(guard) }),
        }
    } else if new_messages(request).is_none() {
        return Err(busy(slot));
    }
    let (session, writer) = branch(&*slot.journal, &slot.ids.session, &slot.ids.agent_id).await?;
    slot.move_to(session);
    Ok(Admission::Runs { writer, guard: None })
}

/// What another run could take. One that goes on from where it stood is no new message.
fn new_messages(request: &RunRequest) -> Option<&[Message]> {
    match &request.input {
        RunInput::Messages(messages) => Some(messages),
        _ => None,
    }
}

async fn open(slot: &RunSlot) -> Result<Arc<dyn JournalWriter>> {
    slot.journal.open(&slot.ids.session, &slot.ids.agent_id).await
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
