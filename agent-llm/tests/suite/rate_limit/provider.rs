//! A provider that limits requests per minute, in virtual time.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use agent_core::{
    Error, ErrorKind, History, Message, ModelRequest, ModelResponse, ModelService, Result, Retry, Usage,
    engine::RunDriver, testing::detached_run,
};
use tokio::time::{Instant, sleep};
use tower::service_fn;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Accounting of a minute by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Minute {
    /// Any sixty seconds.
    Sliding,
    /// From one full minute to the next.
    Fixed,
    /// A token bucket of this capacity, refilled steadily.
    Bucket(u64),
}

/// Clones share one provider.
#[derive(Clone)]
pub(crate) struct Provider {
    limit: u64,
    minute: Minute,
    /// True if refusals contain a delay.
    says_delay: bool,
    latency: Duration,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
pub(crate) struct Books {
    /// Times of accepted requests, and their callers.
    pub(crate) taken: Vec<(Instant, String)>,
    pub(crate) refused: usize,
}

impl Provider {
    pub(crate) fn new(limit: u64, minute: Minute) -> Self {
        Self { limit, minute, says_delay: true, latency: Duration::from_secs(2), books: Arc::default() }
    }

    pub(crate) fn without_delay(mut self) -> Self {
        self.says_delay = false;
        self
    }

    pub(crate) fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Returns the provider as a service below the layers.
    pub(crate) fn service(&self) -> ModelService {
        let provider = self.clone();
        ModelService::new(service_fn(move |req: ModelRequest| {
            let provider = provider.clone();
            async move { provider.answer(&req).await }
        }))
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("nobody panics with the books")
    }

    /// Returns the callers of accepted requests, in order.
    pub(crate) fn order(&self) -> Vec<String> {
        self.books().taken.iter().map(|(_, who)| who.clone()).collect()
    }

    /// Returns the used fraction of the allowance from the first request to the last, in whole
    /// minutes.
    pub(crate) fn utilisation(&self) -> f64 {
        let taken = &self.books().taken;
        let took = taken[taken.len() - 1].0 - taken[0].0;
        let at_best = match self.minute {
            Minute::Bucket(size) => MINUTE.mul_f64((taken.len() as u64 - size) as f64 / self.limit as f64),
            _ => MINUTE * ((taken.len() - 1) as u32 / self.limit as u32),
        };
        at_best.div_duration_f64(took)
    }

    async fn answer(&self, req: &ModelRequest) -> Result<ModelResponse> {
        sleep(Duration::from_millis(50)).await; // network latency
        self.take(Instant::now(), req.messages.last().map(Message::text).unwrap_or_default())?;
        sleep(self.latency).await;
        Ok(ModelResponse::new("done").with_usage(Usage::new(90, 10)))
    }

    fn take(&self, now: Instant, who: String) -> Result<()> {
        let mut books = self.books();
        let taken: Vec<_> = books.taken.iter().map(|(at, _)| *at).collect();
        let Some(wait) = self.wait(&taken, now) else {
            books.taken.push((now, who));
            return Ok(());
        };
        books.refused += 1;
        let delay = self.says_delay.then(|| Duration::from_secs(wait.as_secs() + 1));
        Err(Error::new(ErrorKind::RateLimited, "slow down").with_retry(Retry::Temporary(delay)))
    }

    /// Returns the time that a new request would have to wait, if any.
    fn wait(&self, taken: &[Instant], now: Instant) -> Option<Duration> {
        let first = *taken.first()?;
        match self.minute {
            Minute::Sliding => {
                let oldest = *taken.get(taken.len().checked_sub(self.limit as usize)?)?;
                MINUTE.checked_sub(now - oldest).filter(|wait| !wait.is_zero())
            }
            Minute::Fixed => {
                let begun = first + MINUTE * ((now - first).as_secs() / 60) as u32;
                let in_it = taken.iter().filter(|at| **at >= begun).count() as u64;
                (in_it >= self.limit).then(|| begun + MINUTE - now)
            }
            Minute::Bucket(size) => {
                let refill = MINUTE.div_f64(self.limit as f64);
                let filled = |level: f64, time: Duration| (level + time.div_duration_f64(refill)).min(size as f64);
                let (level, last) =
                    taken.iter().fold((size as f64, first), |(level, last), at| (filled(level, *at - last) - 1.0, *at));
                let missing = 1.0 - filled(level, now - last);
                (missing > 1e-9).then(|| refill.mul_f64(missing))
            }
        }
    }
}

/// A run whose only message names the caller, and a call of it. The run must outlive the call.
pub(crate) fn caller(who: &str) -> (RunDriver, ModelRequest) {
    let run = detached_run(History::from_messages([Message::user(who)]).expect("paired"));
    let request = ModelRequest::new(run.cx().clone());
    (run, request)
}
