//! Streaming of a run in a protocol: from events to frames.

use std::collections::VecDeque;

use agent::{Event, event::Position, journal::RunStatus};
use futures::{Stream, StreamExt, stream, stream::BoxStream};

use crate::{
    ApiError, App, FoundRun,
    app::{OpenStream, Viewer},
    speech::Ending,
};

/// Encoder of a protocol: a state machine that receives the events of a run, and finally its
/// ending.
pub(crate) trait Teller: Send + 'static {
    /// Output of the encoder.
    type Told: Send + 'static;

    /// Returns the output at the beginning.
    fn start(&mut self) -> Vec<Self::Told>;

    /// Returns the output for an event.
    fn event(&mut self, event: &Event) -> Vec<Self::Told>;

    /// Returns the output at the end.
    fn end(&mut self, ending: &Ending) -> Vec<Self::Told>;
}

/// Policy when the last client of a run disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenGone {
    /// Cancel the run: no client can reconnect to it.
    Cancel,
    /// Let the run continue.
    GoOn,
}

/// Streams a run from a position on, encoded by `teller`.
///
/// # Errors
/// The errors of the store.
pub(crate) async fn follow<T: Teller>(
    open: OpenStream,
    run: FoundRun,
    after: Option<Position>,
    when_gone: WhenGone,
    mut teller: T,
) -> Result<impl Stream<Item = T::Told> + Send + use<T>, ApiError> {
    let viewer = viewer(&run, when_gone);
    let events = run.events(after).await?;
    let ready = teller.start().into();
    let following = Following { events, run, teller, ready, viewer, is_over: false, _open: open };
    Ok(stream::unfold(following, |mut following| async {
        let told = following.next().await?;
        Some((told, following))
    }))
}

fn viewer(run: &FoundRun, when_gone: WhenGone) -> Option<Viewer> {
    if when_gone == WhenGone::GoOn {
        run.detach();
    }
    (when_gone == WhenGone::Cancel).then(|| run.viewer())
}

/// Feeds `teller` with the run from a position to its end, and discards the intermediate output.
///
/// # Errors
/// The errors of the store.
pub(crate) async fn finish<T: Teller>(
    run: &FoundRun,
    after: Option<Position>,
    when_gone: WhenGone,
    teller: &mut T,
) -> Result<Ending, ApiError> {
    let viewer = viewer(run, when_gone);
    let mut events = run.events(after).await?;
    while let Some(event) = events.next().await {
        teller.event(&event);
    }
    let ending = ending(run).await?;
    drop(viewer);
    Ok(ending)
}

/// Waits until a run stops and returns its ending.
///
/// # Errors
/// The errors of the store.
pub(crate) async fn ending(run: &FoundRun) -> Result<Ending, ApiError> {
    run.ended().await;
    if let Some(end) = run.end() {
        return Ok(Ending::of(&end));
    }
    // The run was driven by another process.
    let view = run.view().await?;
    let questions = run.checkpoint().await?.map(|open| open.questions).unwrap_or_default();
    if !questions.is_empty() && view.status != crate::RunStatus::Failed {
        return Ok(Ending::Interrupted(questions));
    }
    let record = run.record().await?;
    Ok(match record.and_then(|record| record.status) {
        Some(RunStatus::Finished(reason)) => Ending::Finished { answer: view.answer.unwrap_or_default(), reason },
        Some(RunStatus::Paused) => Ending::Paused,
        Some(RunStatus::Cancelled) => Ending::Cancelled,
        None if view.status == crate::RunStatus::Cancelled => Ending::Cancelled,
        // No further events here: another process resumes the run.
        None if view.status != crate::RunStatus::Failed => Ending::Paused,
        _ => {
            let message = view.error.unwrap_or_else(|| "the run stopped before its end".to_owned());
            Ending::Failed { kind: agent::ErrorKind::Unexpected, message }
        }
    })
}

struct Following<T: Teller> {
    events: BoxStream<'static, Event>,
    run: FoundRun,
    teller: T,
    ready: VecDeque<T::Told>,
    viewer: Option<Viewer>,
    is_over: bool,
    _open: OpenStream,
}

impl<T: Teller> Following<T> {
    async fn next(&mut self) -> Option<T::Told> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            if self.is_over {
                return None;
            }
            match self.events.next().await {
                Some(event) => self.ready.extend(self.teller.event(&event)),
                None => {
                    let ending = ending(&self.run).await.unwrap_or_else(|e| Ending::Failed {
                        kind: e.kind().unwrap_or(agent::ErrorKind::Store),
                        message: e.message().to_owned(),
                    });
                    self.viewer = None;
                    self.is_over = true;
                    self.ready.extend(self.teller.end(&ending));
                }
            }
        }
    }
}

/// Returns the position of a stopped run in its session's stream of events; everything after it is
/// new.
///
/// # Errors
/// The errors of the store.
pub(crate) async fn at_rest(app: &App, run: &FoundRun) -> Result<Position, ApiError> {
    let newest = app.journal().newest(run.store_name()).await?;
    Ok(Position { seq: newest.map_or(0, |entry| entry.seq), after: 0 })
}
