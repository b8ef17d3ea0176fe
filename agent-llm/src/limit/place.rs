//! Waiting in the queue.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, EventKind, Result, Retry, RunCx, Usage};
use serde_json::json;
use tokio::{sync::Notify, time::Instant};

use super::{
    gate::{Order, Sent, Turn},
    limiter::{RATE_LIMIT_EVENT, RateLimiter},
    shared::Share,
};
use crate::call::{cancellation, tell};

/// A request's position in the queue. Dropping it leaves the queue.
pub(super) struct QueueTicket {
    limiter: RateLimiter,
    order: Order,
    turn: Arc<Notify>,
    tokens: u64,
    since: Instant,
    queued: bool,
    waited: bool,
    told: bool,
    /// The provider's last refusal.
    refusal: Option<Error>,
}

impl QueueTicket {
    /// Joins the queue with a request of about `tokens`.
    ///
    /// # Errors
    /// [`ErrorKind::Overloaded`] if the queue is full.
    pub(super) fn take(limiter: &RateLimiter, priority: i8, tokens: u64) -> Result<Self> {
        let (now, turn) = (Instant::now(), Arc::new(Notify::new()));
        let key = limiter.key(priority, now);
        let mut gate = limiter.gate();
        if gate.waiting() >= limiter.rules().max_queue {
            drop(gate);
            let message = format!(
                "{} requests are waiting for the rate limit already: start fewer agents at once, or raise max_queue",
                limiter.rules().max_queue
            );
            return Err(Error::new(ErrorKind::Overloaded, message)
                .with_retry(Retry::Temporary(None))
                .with_context("limiter", limiter.name()));
        }
        let order = gate.join(key, turn.clone());
        drop(gate);
        let limiter = limiter.clone();
        let (queued, waited, told) = (true, false, false);
        Ok(Self { limiter, order, turn, tokens, since: now, queued, waited, told, refusal: None })
    }

    /// Waits for admission.
    ///
    /// # Errors
    /// [`ErrorKind::RateLimited`] if the wait takes too long, as soon as that is known;
    /// [`ErrorKind::Cancelled`] if the run is cancelled.
    pub(super) async fn wait(&mut self, run: Option<&RunCx>) -> Result<Permit> {
        let rules = self.limiter.rules();
        let deadline = rules.max_wait.and_then(|most| self.since.checked_add(most));
        let tell_at = self.since.checked_add(rules.report_after);
        loop {
            let now = Instant::now();
            let (turn, closed) = {
                let mut gate = self.limiter.gate();
                (gate.turn(self.order, self.tokens, self.waited, now), gate.closed_until(now))
            };
            let fits = match turn {
                Turn::Go(request) => {
                    self.queued = false;
                    return Ok(Permit { limiter: self.limiter.clone(), request, sent: false });
                }
                Turn::At(at) => Some(at),
                Turn::Behind => None,
            };
            let opens = fits.or(closed);
            if deadline.is_some_and(|deadline| now >= deadline || opens.is_some_and(|at| at > deadline)) {
                return Err(self.too_long(opens.map(|at| at - now)));
            }
            if !self.told && tell_at.is_some_and(|at| now >= at) {
                self.told = true;
                self.tell(run, opens.map(|at| at - now));
            }
            self.waited = true;
            let wake = [fits, deadline, tell_at.filter(|_| !self.told)].into_iter().flatten().min();
            let sleep = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = cancellation(run) => return Err(cancelled(self.refusal.take())),
                () = self.turn.notified() => {}
                () = sleep => {}
            }
        }
    }

    /// Waits until the request, which is first in this process, also fits the limit shared with
    /// other processes, if any.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and the ledger's errors.
    pub(super) async fn share(&mut self, run: Option<&RunCx>) -> Result<Option<Share>> {
        let Some(shared) = self.limiter.rules().shared.clone() else { return Ok(None) };
        let deadline = self.limiter.rules().max_wait.and_then(|most| self.since.checked_add(most));
        let too_late = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancellation(run) => Err(cancelled(self.refusal.take())),
            taken = shared.take(self.tokens) => taken.map(Some),
            () = too_late => Err(self.too_long(None)),
        }
    }

    /// Rejoins the queue at the old position after a refusal by the provider.
    pub(super) fn take_again(&mut self, run: Option<&RunCx>, refusal: Error, closed: Duration) {
        self.refusal = Some(refusal);
        self.limiter.gate().rejoin(self.order, self.turn.clone());
        self.queued = true;
        self.tell(run, Some(closed));
    }

    fn tell(&self, run: Option<&RunCx>, opens: Option<Duration>) {
        let value = json!({
            "limiter": self.limiter.name(),
            "waited": self.since.elapsed().as_secs_f64(),
            "ahead": self.limiter.gate().ahead_of(self.order),
            "opens_in": opens.map(|d| d.as_secs_f64()),
            "refused": self.refusal.as_ref().map(ToString::to_string),
        });
        tell(run, EventKind::Custom { name: RATE_LIMIT_EVENT.into(), value });
    }

    fn too_long(&mut self, opens: Option<Duration>) -> Error {
        let most = self.limiter.rules().max_wait.unwrap_or_default();
        let waited = Duration::from_secs(self.since.elapsed().as_secs());
        let message = format!(
            "after {waited:?} the request would have to wait for the rate limit longer than the {most:?} of max_wait: \
             raise it, or start fewer agents at once"
        );
        // Permanent: a retry would queue again, beyond the maximum waiting time.
        let error = Error::new(ErrorKind::RateLimited, message)
            .with_retry(Retry::Permanent)
            .with_context("limiter", self.limiter.name())
            .with_context("waiting", self.limiter.gate().waiting().to_string());
        let error = match opens {
            Some(opens) => error.with_context("opens_in", opens.as_secs().to_string()),
            None => error,
        };
        with_source(error, self.refusal.take())
    }
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        if self.queued {
            self.limiter.gate().leave(self.order);
        }
    }
}

fn cancelled(refusal: Option<Error>) -> Error {
    let error = Error::new(ErrorKind::Cancelled, "the run was cancelled while a call waited for the rate limit");
    with_source(error, refusal)
}

fn with_source(error: Error, source: Option<Error>) -> Error {
    match source {
        Some(source) => error.with_source(source),
        None => error,
    }
}

/// Permission to send one request. Dropped before the request was sent, it is returned; dropped
/// later, the request counts.
pub(super) struct Permit {
    limiter: RateLimiter,
    request: Sent,
    sent: bool,
}

impl Permit {
    pub(super) fn send(&mut self) {
        self.sent = true;
    }

    pub(super) fn answered(self, usage: &Usage, share: Option<Share>) {
        let used = (usage.calls > 0).then(|| (self.limiter.rules().counted)(usage));
        self.limiter.gate().taken(self.request, used);
        if let Some(share) = share {
            share.answered(used);
        }
    }

    /// Records a refusal. Returns the time during which nothing is admitted.
    pub(super) fn refused(self, delay: Option<Duration>) -> Duration {
        self.limiter.gate().refused(self.request, delay, Instant::now())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.sent {
            self.limiter.gate().unsent(self.request);
        }
    }
}
