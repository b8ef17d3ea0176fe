//! How a run comes to its session, or does not.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, JournalWriter, Message, Result, RunEnd, RunInput, RunRequest, WhenBusy};
use tokio_util::sync::CancellationToken;

use super::{
    branch::branch,
    lines::{Queued, Turn},
};
use crate::{agent::Inner, start::Place};

/// What becomes of a run at the top.
pub(crate) enum Admission {
    /// It is its session's writer, until both are dropped.
    Runs { writer: Arc<dyn JournalWriter>, turn: Option<Turn> },
    /// Another run took its messages, and ended so.
    Ended(Result<RunEnd>),
}

/// Opens the session, as the policy says if another run holds it.
pub(crate) async fn admit(agent: &Inner, request: &mut RunRequest, place: &mut Place) -> Result<Admission> {
    let is_new = matches!(request.input, RunInput::Messages(_)) && request.session.is_none();
    if is_new || agent.journal.is_none() {
        return Ok(Admission::Runs { writer: open(place).await?, turn: None }); // nobody else knows the session
    }
    let queued = agent.lines.line(&place.ids.session, &place.ids.agent_id);
    match request.when_busy.unwrap_or(agent.when_busy) {
        WhenBusy::Queue { limit } => queue(&queued, limit, place).await,
        WhenBusy::Steer => steer(&queued, request, place).await,
        WhenBusy::Fork => fork(&queued, request, place).await,
        _ => {
            let turn = queued.try_turn(&place.inbox).ok_or_else(|| busy(place))?;
            Ok(Admission::Runs { writer: open(place).await?, turn: Some(turn) })
        }
    }
}

async fn queue(queued: &Queued, limit: usize, place: &Place) -> Result<Admission> {
    let turn = match queued.try_turn(&place.inbox) {
        Some(turn) => turn,
        None => {
            let _waiting = queued.wait(limit).ok_or_else(|| {
                busy(place).map_message(|m| format!("{m}, and {limit} others wait for it: try again later"))
            })?;
            unless_cancelled(&place.cancel, async { Ok(queued.turn(&place.inbox).await) }).await?
        }
    };
    let writer = unless_cancelled(&place.cancel, open_patiently(place)).await?;
    Ok(Admission::Runs { writer, turn: Some(turn) })
}

/// Waits for another process. Whose turn it is there nobody here can know, so it is asked again and again.
async fn open_patiently(place: &Place) -> Result<Arc<dyn JournalWriter>> {
    const LONGEST: Duration = Duration::from_millis(500);
    let mut pause = Duration::from_millis(5);
    loop {
        match open(place).await {
            Err(e) if e.kind() == ErrorKind::Busy => tokio::time::sleep(pause).await,
            opened => return opened,
        }
        pause = (pause * 2).min(LONGEST);
    }
}

async fn steer(queued: &Queued, request: &RunRequest, place: &Place) -> Result<Admission> {
    let Some(messages) = new_messages(request) else {
        let turn = queued.try_turn(&place.inbox).ok_or_else(|| busy(place))?;
        return Ok(Admission::Runs { writer: open(place).await?, turn: Some(turn) });
    };
    let turn = loop {
        let running = tokio::select! {
            biased;
            running = queued.running() => running,
            turn = queued.turn(&place.inbox) => break turn,
            () = place.cancel.cancelled() => return Err(cancelled()),
        };
        match running.steer(messages.to_vec()) {
            Ok(end) => {
                drop(running); // or nobody would notice that the run was dropped
                return Ok(Admission::Ended(unless_cancelled(&place.cancel, end).await));
            }
            // It takes no more, and is about to end.
            Err(e) if e.kind() == ErrorKind::Stopped => {
                unless_cancelled(&place.cancel, queued.over(&running)).await?;
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
    Ok(Admission::Runs { writer: open(place).await.map_err(elsewhere)?, turn: Some(turn) })
}

async fn fork(queued: &Queued, request: &RunRequest, place: &mut Place) -> Result<Admission> {
    if let Some(turn) = queued.try_turn(&place.inbox) {
        match open(place).await {
            Err(e) if e.kind() == ErrorKind::Busy && new_messages(request).is_some() => {} // another process has it
            opened => return Ok(Admission::Runs { writer: opened?, turn: Some(turn) }),
        }
    } else if new_messages(request).is_none() {
        return Err(busy(place));
    }
    let (session, writer) = branch(&*place.journal, &place.ids.session, &place.ids.agent_id).await?;
    place.move_to(session);
    Ok(Admission::Runs { writer, turn: None })
}

/// What another run could take. One that goes on from where it stood is no new message.
fn new_messages(request: &RunRequest) -> Option<&[Message]> {
    match &request.input {
        RunInput::Messages(messages) => Some(messages),
        _ => None,
    }
}

async fn open(place: &Place) -> Result<Arc<dyn JournalWriter>> {
    place.journal.open(&place.ids.session, &place.ids.agent_id).await
}

fn busy(place: &Place) -> Error {
    let (session, agent) = (&place.ids.session, &place.ids.agent_id);
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
