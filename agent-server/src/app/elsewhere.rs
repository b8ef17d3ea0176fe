//! A run that another process drives, as the journal tells of it.

use std::{sync::Arc, time::Duration};

use agent::{Event, engine::EventHub, event::Position, journal::RunStatus, run::RunIds};
use futures::{
    StreamExt,
    future::{self, Either},
    stream::{self, BoxStream},
};

use tokio::time::sleep;

use super::{FoundRun, brought::Kept, drained::is_drained, view::RunStatus as Standing};
use crate::error::ApiError;

/// After which time whoever runs the agents is asked again whether a run that the journal calls stopped goes on: at first, and at most.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Whether anything of a run goes on by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing does, or nobody here waits for it any more.
    Settled,
    /// It is under way, and the journal tells when it is not.
    UnderWay,
    /// The journal calls it stopped, and whoever runs it goes on with it: what comes of that the journal may not tell.
    GoesOn,
}

impl FoundRun {
    /// The events after a place, as the journal gets them, until the run is at rest or this process is about to end.
    pub(super) async fn elsewhere(&self, after: Position) -> Result<BoxStream<'static, Event>, ApiError> {
        let mut look = LOOK.0;
        let record = loop {
            let newest = self.newest().await?;
            if let Some(record) = self.record().await? {
                break record;
            }
            match self.rest().await? {
                Rest::Settled => return Ok(stream::empty().boxed()),
                rest => self.wait_for_news(newest, rest, &mut look).await?,
            }
        };
        let mut ids = RunIds::root(self.agent(), self.store_name().clone());
        (ids.run_id, ids.root_run_id) = (self.id().into(), self.id().into());
        let hub = EventHub::elsewhere(self.app().journal().clone(), &Arc::new(ids), record.seq);
        hub.grew(self.newest().await?);
        let events = hub.subscribe_after(record.seq, after);
        if self.rest().await? == Rest::Settled {
            hub.grew(self.newest().await?);
            hub.close();
            return Ok(events.boxed());
        }
        let run = self.clone();
        let growing = stream::once(async move {
            let mut pause = LOOK.0;
            while let Err(error) = run.tell(&hub).await {
                // Readers wait with it: an end that is no end would be told to them as one.
                tracing::warn!(run = run.id(), %error, "what comes of a run elsewhere cannot be read now; trying again");
                tokio::select! {
                    () = sleep(pause) => pause = (pause * 2).min(LOOK.1),
                    () = run.app().ends() => break,
                }
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
        let mut look = LOOK.0;
        loop {
            let newest = self.newest().await?;
            let rest = self.rest().await?;
            if rest == Rest::Settled {
                hub.grew(self.newest().await?);
                return Ok(());
            }
            hub.grew(newest);
            self.wait_for_news(newest, rest, &mut look).await?;
        }
    }

    /// Waits until the run is at rest, or until this process is about to end.
    pub(super) async fn rests(&self) -> Result<(), ApiError> {
        let mut look = LOOK.0;
        loop {
            let newest = self.newest().await?;
            match self.rest().await? {
                Rest::Settled => return Ok(()),
                rest => self.wait_for_news(newest, rest, &mut look).await?,
            }
        }
    }

    /// Waits until the session has something after the entry `newest`, or this process is about to end; or, where the journal may tell nothing,
    /// until it is time to `look` again.
    async fn wait_for_news(&self, newest: u64, rest: Rest, look: &mut Duration) -> Result<(), ApiError> {
        tokio::select! {
            news = self.app().journal().news(self.store_name(), newest) => {
                *look = LOOK.0;
                Ok(news?)
            }
            () = self.app().ends() => Ok(()),
            () = sleep(*look), if rest == Rest::GoesOn => {
                *look = (*look * 2).min(LOOK.1);
                Ok(())
            }
        }
    }

    pub(super) async fn newest(&self) -> Result<u64, ApiError> {
        Ok(self.app().journal().newest(self.store_name()).await?.map_or(0, |entry| entry.seq))
    }

    async fn rest(&self) -> Result<Rest, ApiError> {
        if self.app().is_draining() {
            return Ok(Rest::Settled);
        }
        let goes_on = async || -> Result<Rest, ApiError> {
            let goes_on = matches!(self.standing().await?, Some((Standing::Queued | Standing::Running, _)));
            Ok(if goes_on { Rest::GoesOn } else { Rest::Settled })
        };
        let known = self.app().look(self.store_name(), |index| match index.run(self.id()) {
            Some((_, record)) => Some(match record.status {
                None => Rest::UnderWay,
                Some(RunStatus::Paused | RunStatus::Cancelled) if is_drained(index, self.id()) => Rest::UnderWay,
                Some(RunStatus::Finished(_)) => Rest::Settled,
                Some(_) => Rest::GoesOn,
            }),
            None => Kept::of_run(index, self.id()).map(|kept| match kept.queued.is_none() || kept.over.is_some() {
                true => Rest::Settled,
                false => Rest::UnderWay,
            }),
        });
        match known.await? {
            Some(Rest::GoesOn) | None => goes_on().await,
            Some(known) => Ok(known),
        }
    }
}
