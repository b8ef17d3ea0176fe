//! Sliding window of the requests sent in the last minute.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// Slightly more than a minute: of two requests, the later one may arrive earlier.
pub(super) const WINDOW: Duration = Duration::from_millis(60_250);

/// Requests of the last minute, oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    sent: VecDeque<Sent>,
    /// Number of the oldest request.
    first: u64,
    requests: u64,
    tokens: u64,
}

#[derive(Debug)]
struct Sent {
    at: Instant,
    /// 0 if withdrawn: the entry stays, so that the others keep their numbers.
    requests: u64,
    tokens: u64,
}

/// Limits of one minute.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Most {
    pub(super) requests: Option<u64>,
    pub(super) tokens: Option<u64>,
}

impl Log {
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Removes requests older than the window.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.sent.front().is_some_and(|oldest| oldest.at + WINDOW <= now) {
            if let Some(old) = self.sent.pop_front() {
                self.first += 1;
                self.requests -= old.requests;
                self.tokens -= old.tokens;
            }
        }
    }

    /// Returns the time at which a request of `tokens` fits. A request larger than the limit fits
    /// an empty window.
    pub(super) fn fits_at(&self, tokens: u64, most: Most, now: Instant) -> Instant {
        let (mut requests, mut used) = (self.requests, self.tokens);
        let mut at = now;
        for oldest in &self.sent {
            let one_more = most.requests.is_none_or(|most| requests < most);
            if one_more && most.tokens.is_none_or(|most| used == 0 || used.saturating_add(tokens) <= most) {
                break;
            }
            requests -= oldest.requests;
            used -= oldest.tokens;
            at = oldest.at + WINDOW;
        }
        at
    }

    /// Adds a request; returns its number.
    pub(super) fn add(&mut self, tokens: u64, now: Instant) -> u64 {
        self.sent.push_back(Sent { at: now, requests: 1, tokens });
        self.requests += 1;
        self.tokens += tokens;
        self.first + self.sent.len() as u64 - 1
    }

    /// Sets the actual usage of a request.
    pub(super) fn settle(&mut self, number: u64, tokens: u64) {
        if let Some(sent) = find(&mut self.sent, self.first, number) {
            self.tokens = self.tokens - sent.tokens + tokens;
            sent.tokens = tokens;
        }
    }

    /// Removes a request that the provider did not accept.
    pub(super) fn take_back(&mut self, number: u64) {
        if let Some(sent) = find(&mut self.sent, self.first, number) {
            self.requests -= sent.requests;
            self.tokens -= sent.tokens;
            (sent.requests, sent.tokens) = (0, 0);
        }
    }
}

fn find(sent: &mut VecDeque<Sent>, first: u64, number: u64) -> Option<&mut Sent> {
    sent.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
}
