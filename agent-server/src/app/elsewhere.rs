//! Runs of other processes, observed through the journal and the relay.

use std::{mem, sync::Arc, time::Duration};

use agent::{
    Event,
    dispatch::{JobStatus, RunAddress},
    engine::EventHub,
    event::Position,
    journal::{RunStatus as Status, SessionIndex},
    run::RunIds,
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use tokio::time::{Instant, sleep};

use super::{
    FoundRun,
    brought::PersistedRequest,
    drained::is_drained,
    feed::{self, Feed, Merge},
    view::RunStatus,
};
use crate::error::ApiError;

/// Initial and maximum interval at which the backend is asked whether a run resumes that the
/// journal shows as stopped.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Interval at which the backend is asked whether a run is active that the journal shows as active.
const RARELY: Duration = Duration::from_secs(5);

/// Activity of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// The run is inactive, or nobody here waits for it.
    Settled,
    /// The run is active, and the journal will show its end; unless it becomes a dead letter, which
    /// only the backend knows.
    UnderWay,
    /// Like [`UnderWay`](Self::UnderWay), for a sub-agent's run whose root run is in another
    /// session: the backend does not know it.
    Below,
    /// The journal shows the run as stopped, and the backend is resuming it: the journal may not
    /// show the result.
    GoesOn,
}

/// Polling state of the backend.
struct Look {
    /// Next polling interval of a resuming run.
    pause: Duration,
    /// Time of the last request about an active run.
    asked: Option<Instant>,
    /// True if the backend reported the run as suspended, which the journal may be about to show.
    rests: bool,
}

impl Look {
    fn new() -> Self {
        Self { pause: LOOK.0, asked: None, rests: false }
    }

    /// Returns the time until the next request about an active run.
    fn rest(&self) -> Duration {
        self.asked.map_or(Duration::ZERO, |asked| RARELY.saturating_sub(asked.elapsed()))
    }

    /// Derives the activity of a run that the journal shows as active, with this job status.
    fn hears(&mut self, standing: Option<&JobStatus>) -> Rest {
        let rested = mem::replace(&mut self.rests, matches!(standing, Some(JobStatus::AtRest)));
        self.asked = Some(Instant::now());
        match standing {
            Some(JobStatus::Queued | JobStatus::Running { .. }) => Rest::UnderWay,
            Some(JobStatus::AtRest) if !rested => Rest::UnderWay,
            _ => Rest::Settled,
        }
    }
}

impl FoundRun {
    /// Streams the events after a position, until the run is inactive or this process shuts down:
    /// durable events as the journal receives them, and transient ones as they are relayed.
    pub(super) async fn elsewhere(&self, after: Position) -> Result<BoxStream<'static, Event>, ApiError> {
        let (app, at) = (self.app(), self.address());
        if let Some(feed) = app.0.feeds.find(&at) {
            return Ok(feed.events(after));
        }
        // Before the run begins, so that its first chunk is relayed.
        let relayed = feed::subscribe(app.0.relay.as_ref(), &at);
        let (mut look, mut is_early) = (Look::new(), false);
        let record = loop {
            let newest = self.newest().await?;
            if let Some(record) = self.record().await? {
                break record;
            }
            is_early = true;
            match self.rest(&mut look).await? {
                Rest::Settled => return Ok(stream::empty().boxed()),
                rest => self.wait_for_news(newest, rest, &mut look).await?,
            }
        };
        let mut ids = RunIds::root(self.agent(), self.store_name().clone());
        (ids.run_id, ids.root_run_id) = (self.id().into(), self.id().into());
        let (ids, journal, began) = (Arc::new(ids), app.journal().clone(), record.seq);
        // A viewer that waited for the run receives its relayed events even if the run has ended.
        if !is_early && self.rest(&mut Look::new()).await? == Rest::Settled {
            return Ok(EventHub::at_rest(journal, &ids, began, self.newest().await?)
                .subscribe_after(began, after)
                .boxed());
        }
        let feed = app.0.feeds.enter(at, || {
            let hub = EventHub::elsewhere(journal.clone(), &ids, began);
            let run = self.clone();
            Feed::start(hub, began, |hub| async move {
                let mut merge = Merge::new(hub.clone(), began, journal, relayed);
                run.feed(&mut merge, &hub).await;
            })
        });
        Ok(feed.events(after))
    }

    /// Feeds the run's hub until the run is inactive, or this process shuts down.
    async fn feed(&self, merge: &mut Merge, hub: &EventHub) {
        let mut pause = LOOK.0;
        while let Err(error) = self.merge(merge, hub).await {
            // Readers wait meanwhile: ending the stream would look like the end of the run.
            tracing::warn!(run = self.id(), %error, "the state of a run in another process could not be read; trying again");
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(LOOK.1),
                () = self.app().ends() => break,
            }
        }
        self.app().0.feeds.leave(&self.address(), hub);
    }

    async fn merge(&self, merge: &mut Merge, hub: &EventHub) -> Result<(), ApiError> {
        let mut look = Look::new();
        loop {
            let newest = self.newest().await?;
            let rest = self.rest(&mut look).await?;
            if rest == Rest::Settled {
                let last = self.newest().await?;
                merge.catch_up(last, true).await?;
                self.app().0.feeds.leave(&self.address(), hub);
                if self.newest().await? == last {
                    return Ok(());
                }
                // The run resumed while a viewer could still find the feed.
                continue;
            }
            merge.catch_up(newest, false).await?;
            merge.relay_until(self.wait_for_news(newest, rest, &mut look)).await?;
        }
    }

    /// Waits until the run is inactive, or this process shuts down.
    pub(super) async fn rests(&self) -> Result<(), ApiError> {
        let mut look = Look::new();
        loop {
            let newest = self.newest().await?;
            match self.rest(&mut look).await? {
                Rest::Settled => return Ok(()),
                rest => self.wait_for_news(newest, rest, &mut look).await?,
            }
        }
    }

    /// Waits until the session has an entry after `newest`, or this process shuts down; or, where
    /// the journal may not show progress, until it is time to poll again.
    async fn wait_for_news(&self, newest: u64, rest: Rest, look: &mut Look) -> Result<(), ApiError> {
        let (asks, pause) = match rest {
            Rest::GoesOn => (true, look.pause),
            _ => (rest == Rest::UnderWay && self.app().remote().is_some(), look.rest()),
        };
        tokio::select! {
            news = self.app().journal().news(self.store_name(), newest) => {
                look.pause = LOOK.0;
                Ok(news?)
            }
            () = self.app().ends() => Ok(()),
            () = sleep(pause), if asks => {
                look.pause = (look.pause * 2).min(LOOK.1);
                Ok(())
            }
        }
    }

    pub(super) async fn newest(&self) -> Result<u64, ApiError> {
        Ok(self.app().journal().newest(self.store_name()).await?.map_or(0, |entry| entry.seq))
    }

    async fn rest(&self, look: &mut Look) -> Result<Rest, ApiError> {
        if self.app().is_draining() {
            return Ok(Rest::Settled);
        }
        let known = self.app().look(self.store_name(), |index| self.known(index)).await?;
        let (known, asked_for) = known.unwrap_or_else(|| (Rest::GoesOn, self.address()));
        match known {
            Rest::GoesOn if !self.goes_on().await? => Ok(Rest::Settled),
            // Its process may have died repeatedly: then nobody writes its end.
            Rest::UnderWay if look.rest().is_zero() => match self.app().remote() {
                Some(dispatch) => Ok(look.hears(dispatch.standing(&asked_for).await?.as_ref())),
                None => Ok(Rest::UnderWay),
            },
            known => Ok(known),
        }
    }

    /// Returns the activity according to the journal, and the address to ask the backend for: that
    /// of the root run.
    fn known(&self, index: &SessionIndex) -> Option<(Rest, RunAddress)> {
        let Some((_, record)) = index.run(self.id()) else {
            let kept = PersistedRequest::of_run(index, self.id())?;
            let is_settled = kept.queued.is_none() || kept.over.is_some();
            return Some((if is_settled { Rest::Settled } else { Rest::UnderWay }, self.address()));
        };
        let top = index.run(&record.root).filter(|_| !record.is_root);
        let above =
            top.map(|(agent, top)| RunAddress::new(agent.clone(), self.store_name().clone(), top.run_id.clone()));
        let rest = match record.status {
            None if record.is_root || above.is_some() => Rest::UnderWay,
            None => Rest::Below,
            Some(Status::Paused | Status::Cancelled) if is_drained(index, self.id()) => Rest::UnderWay,
            Some(Status::Finished(_)) => Rest::Settled,
            Some(_) => Rest::GoesOn,
        };
        Some((rest, above.unwrap_or_else(|| self.address())))
    }

    /// True if the backend reports that the run is queued or active.
    async fn goes_on(&self) -> Result<bool, ApiError> {
        Ok(matches!(self.standing(true).await?, Some((RunStatus::Queued | RunStatus::Running, _))))
    }
}
