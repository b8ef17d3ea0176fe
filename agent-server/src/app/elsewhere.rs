//! A run that another process drives, as the journal tells of it.

use std::{sync::Arc, time::Duration};

use agent::{Event, engine::EventHub, event::Position, journal::RunStatus, run::RunIds};
use futures::{
    StreamExt,
    future::{self, Either},
    stream::{self, BoxStream},
};

use tokio::time::{sleep, timeout};

use super::{FoundRun, brought::Kept, drained::is_drained, view::RunStatus as Standing};
use crate::error::ApiError;

/// How often the queue is asked whether answers were refused.
const LOOK: Duration = Duration::from_secs(1);

impl FoundRun {
    /// The events after a place, as the journal gets them, until the run is at rest or this process is about to end.
    pub(super) async fn elsewhere(&self, after: Position) -> Result<BoxStream<'static, Event>, ApiError> {
        let record = loop {
            let newest = self.newest().await?;
            match self.record().await? {
                Some(record) => break record,
                None if self.is_at_rest().await? => return Ok(stream::empty().boxed()),
                None => self.wait_for_news(newest).await?,
            }
        };
        let mut ids = RunIds::root(self.agent(), self.store_name().clone());
        (ids.run_id, ids.root_run_id) = (self.id().into(), self.id().into());
        let hub = EventHub::elsewhere(self.app().journal().clone(), &Arc::new(ids), record.seq);
        hub.grew(self.newest().await?);
        let events = hub.subscribe_after(record.seq, after);
        if self.is_at_rest().await? {
            hub.grew(self.newest().await?);
            hub.close();
            return Ok(events.boxed());
        }
        let run = self.clone();
        let growing = stream::once(async move {
            if let Err(error) = run.tell(&hub).await {
                tracing::error!(run = run.id(), %error, "what came of a run elsewhere was not read");
            }
            hub.close();
        });
        let both = stream::select(events.map(Either::Left), growing.map(Either::Right));
        Ok(both
            .filter_map(|one| {
                future::ready(match one {
                    Either::Left(event) => Some(event),
                    Either::Right(()) => None,
                })
            })
            .boxed())
    }

    /// Tells a hub what the journal has, until the run is at rest.
    async fn tell(&self, hub: &EventHub) -> Result<(), ApiError> {
        loop {
            let newest = self.newest().await?;
            if self.is_at_rest().await? {
                hub.grew(self.newest().await?);
                return Ok(());
            }
            hub.grew(newest);
            self.wait_for_news(newest).await?;
        }
    }

    /// Waits until the run is at rest, or until this process is about to end.
    pub(super) async fn rests(&self) -> Result<(), ApiError> {
        loop {
            let newest = self.newest().await?;
            if self.is_at_rest().await? {
                return Ok(());
            }
            self.wait_for_news(newest).await?;
        }
    }

    /// Waits until the journal has something that came after the answers that the run was given; for a minute at most, since of answers that are
    /// refused it tells nothing.
    pub(super) async fn goes_on(&self) -> Result<(), ApiError> {
        let Some(answered) = self.answered_at() else { return Ok(()) };
        let goes_on = async {
            while !self.app().is_draining() && self.newest().await? <= answered {
                self.wait_for_news(answered).await?;
            }
            Ok(())
        };
        timeout(Duration::from_secs(60), goes_on).await.unwrap_or(Ok(()))
    }

    /// Waits until the session has something after the entry `newest`, or this process is about to end.
    async fn wait_for_news(&self, newest: u64) -> Result<(), ApiError> {
        tokio::select! {
            news = self.app().journal().news(self.store_name(), newest) => Ok(news?),
            () = self.app().ends() => Ok(()),
            // Of answers that are refused the journal tells nothing.
            () = sleep(LOOK), if self.answered_at().is_some() => Ok(()),
        }
    }

    pub(super) async fn newest(&self) -> Result<u64, ApiError> {
        Ok(self.app().journal().newest(self.store_name()).await?.map_or(0, |entry| entry.seq))
    }

    /// True if nothing of the run goes on by itself, or nobody here waits for it any more.
    async fn is_at_rest(&self) -> Result<bool, ApiError> {
        if self.app().is_draining() {
            return Ok(true);
        }
        let is_taken = match self.answered_at() {
            Some(answered) => self.newest().await? > answered,
            None => true,
        };
        if !is_taken && matches!(self.standing().await?, Some((Standing::Queued | Standing::Running, _))) {
            return Ok(false);
        }
        let known = self.app().look(self.store_name(), |index| match index.run(self.id()) {
            Some((_, record)) => Some(match record.status {
                None => false,
                Some(RunStatus::Paused | RunStatus::Cancelled) => !is_drained(index, self.id()),
                Some(_) => true,
            }),
            None => Kept::of_run(index, self.id()).map(|kept| kept.queued.is_none() || kept.over.is_some()),
        });
        match known.await? {
            Some(is_at_rest) => Ok(is_at_rest),
            None => Ok(!matches!(self.standing().await?, Some((Standing::Queued | Standing::Running, _)))),
        }
    }
}
