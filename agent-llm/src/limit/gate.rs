//! State of the rate limiter: queue, sliding window, learned rate, closure after a 429. Waiting
//! itself is elsewhere.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{sync::Notify, time::Instant};

use super::{
    allowance::Allowance,
    log::{Log, Most},
};

/// Closure after a refusal without a delay: doubles with each refusal, from the first value up to
/// the second.
const FIRST_CLOSURE: Duration = Duration::from_secs(1);
const LONGEST_CLOSURE: Duration = Duration::from_secs(30);

/// Position in the queue: smaller goes first. The second number orders requests of the same moment.
pub(super) type Order = (i64, u64);

/// A request that was admitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    number: u64,
    at: Instant,
    /// True if the request had to wait: only waiting requests show that a higher rate would be
    /// used.
    waited: bool,
}

/// Answer to a request that asks for admission.
#[derive(Debug)]
pub(super) enum Turn {
    Go(Sent),
    /// The request is the first in the queue, and fits at this time.
    At(Instant),
    /// Other requests are ahead.
    Behind,
}

#[derive(Debug)]
pub(super) struct Gate {
    requests: Allowance,
    tokens: Option<Allowance>,
    log: Log,
    queue: BTreeMap<Order, Arc<Notify>>,
    joined: u64,
    /// `evenly`: requests are always spread. `spread`: they are spread now, after a refusal until
    /// the rate has recovered.
    evenly: bool,
    spread: bool,
    /// Time of the next admission while requests are spread.
    next: Option<Instant>,
    closed: Option<Instant>,
    cut: Option<Instant>,
    /// Number of refusals since the provider last accepted a request sent after one.
    strikes: u32,
    refused: u64,
}

impl Gate {
    pub(super) fn new(requests: Allowance, tokens: Option<Allowance>, evenly: bool) -> Self {
        Self {
            requests,
            tokens,
            log: Log::default(),
            queue: BTreeMap::new(),
            joined: 0,
            evenly,
            spread: evenly,
            next: None,
            closed: None,
            cut: None,
            strikes: 0,
            refused: 0,
        }
    }

    // --- the queue ---

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns the number of requests ahead of `order`.
    pub(super) fn ahead_of(&self, order: Order) -> usize {
        self.queue.range(..order).count()
    }

    /// Joins the queue at `key`, behind requests with the same key.
    pub(super) fn join(&mut self, key: i64, turn: Arc<Notify>) -> Order {
        self.joined += 1;
        let order = (key, self.joined);
        self.rejoin(order, turn);
        order
    }

    /// Returns a refused request to its old position.
    pub(super) fn rejoin(&mut self, order: Order, turn: Arc<Notify>) {
        self.queue.insert(order, turn);
    }

    pub(super) fn leave(&mut self, order: Order) {
        self.queue.remove(&order);
        self.wake_first();
    }

    fn wake_first(&self) {
        if let Some((_, turn)) = self.queue.first_key_value() {
            turn.notify_one();
        }
    }

    // --- admission ---

    /// Admits the request at `order` if it is the first and fits now.
    pub(super) fn turn(&mut self, order: Order, tokens: u64, waited: bool, now: Instant) -> Turn {
        if self.queue.first_key_value().is_none_or(|(first, _)| *first != order) {
            return Turn::Behind;
        }
        self.log.expire(now);
        let at = self.fits_at(tokens, now);
        if at > now {
            return Turn::At(at);
        }
        let number = self.log.add(tokens, now);
        self.next = Some(now + self.requests.interval());
        self.leave(order);
        Turn::Go(Sent { number, at: now, waited })
    }

    fn fits_at(&self, tokens: u64, now: Instant) -> Instant {
        let most = Most { requests: self.requests.most(), tokens: self.tokens.as_ref().and_then(Allowance::most) };
        let in_window = self.log.fits_at(tokens, most, now);
        let next = self.next.filter(|_| self.spread);
        [Some(in_window), next, self.closed].into_iter().flatten().max().unwrap_or(now)
    }

    // --- outcome ---

    /// Records that the provider accepted the request, which used `tokens` if known.
    pub(super) fn taken(&mut self, sent: Sent, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            self.log.settle(sent.number, tokens);
        }
        if self.is_since_cut(sent) {
            self.strikes = 0;
        }
        if sent.waited {
            self.requests.grow(1);
            if let Some(allowance) = &mut self.tokens {
                allowance.grow(tokens.unwrap_or(0));
            }
        }
        self.spread &= self.evenly || self.requests.is_cut();
        self.wake_first();
    }

    /// Records that the provider refused the request for its rate and asked for this delay. Returns
    /// the time during which nothing is admitted.
    pub(super) fn refused(&mut self, sent: Sent, delay: Option<Duration>, now: Instant) -> Duration {
        self.refused += 1;
        self.log.expire(now);
        self.log.take_back(sent.number);
        let anew = self.is_since_cut(sent);
        self.requests.cut(self.log.requests(), anew);
        if let Some(allowance) = &mut self.tokens {
            allowance.cut(self.log.tokens(), anew);
        }
        self.spread = true;
        if anew {
            self.strikes += 1;
            self.cut = Some(now);
        }
        let wait = match delay.filter(|delay| !delay.is_zero()) {
            // A delay that was too short twice is no longer trusted.
            Some(delay) => delay.max(closure(self.strikes.saturating_sub(2))),
            None if anew => closure(self.strikes),
            None => Duration::ZERO,
        };
        let until = now.checked_add(wait).max(self.closed);
        self.closed = until;
        if anew {
            self.next = until;
        }
        self.wake_first();
        until.map_or(Duration::ZERO, |until| until - now)
    }

    /// Returns true if the request was sent after the last cut; older ones say nothing about the
    /// rate since.
    fn is_since_cut(&self, sent: Sent) -> bool {
        self.cut.is_none_or(|cut| sent.at > cut)
    }

    /// Withdraws an admitted request that was not sent.
    pub(super) fn unsent(&mut self, sent: Sent) {
        self.log.take_back(sent.number);
        self.wake_first();
    }

    // --- status ---

    pub(super) fn closed_until(&self, now: Instant) -> Option<Instant> {
        self.closed.filter(|until| *until > now)
    }

    pub(super) fn rates(&self) -> (Option<f64>, Option<f64>) {
        (self.requests.rate(), self.tokens.as_ref().and_then(Allowance::rate))
    }

    /// Returns the requests of the last minute, and the tokens that they used or reserved.
    pub(super) fn in_window(&mut self, now: Instant) -> (u64, u64) {
        self.log.expire(now);
        (self.log.requests(), self.log.tokens())
    }

    pub(super) fn refusals(&self) -> u64 {
        self.refused
    }
}

/// Returns the closure after the `n`th refusal in a row.
fn closure(n: u32) -> Duration {
    match n.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => FIRST_CLOSURE.saturating_mul(1 << doublings.min(16)).min(LONGEST_CLOSURE),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limit::log::WINDOW;

    const MINUTE: Duration = Duration::from_secs(60);

    /// One request of a simulated hour: arrival, priority, reserved tokens, and the fraction of
    /// them that it uses.
    #[derive(Clone, Debug)]
    struct Request {
        comes: u64,
        priority: i8,
        tokens: u64,
        part: f64,
    }

    fn requests() -> impl Strategy<Value = Vec<Request>> {
        let request = (0_u64..600_000, -2_i8..3, 0_u64..400, 0.0..1.0)
            .prop_map(|(comes, priority, tokens, part)| Request { comes, priority, tokens, part });
        prop::collection::vec(request, 1..120).prop_map(|mut all| {
            all.sort_by_key(|request| request.comes);
            all
        })
    }

    const AGING: u64 = 30_000;

    /// Runs all requests through a gate that refuses none; returns each with its admission time, in
    /// that order.
    fn run(mut gate: Gate, requests: &[Request]) -> Vec<(Request, u64)> {
        let began = Instant::now();
        let (mut clock, mut coming, mut queue, mut gone) = (0, requests.iter().peekable(), BTreeMap::new(), Vec::new());
        while coming.peek().is_some() || !queue.is_empty() {
            while let Some(request) = coming.next_if(|request| request.comes <= clock) {
                let key = request.comes as i64 + i64::from(request.priority) * AGING as i64;
                queue.insert(gate.join(key, Arc::default()), request.clone());
            }
            let next = coming.peek().map(|request| request.comes);
            let Some((order, request)) = queue.first_key_value().map(|(order, request)| (*order, request.clone()))
            else {
                clock = next.expect("something comes");
                continue;
            };
            let now = began + Duration::from_millis(clock);
            match gate.turn(order, request.tokens, request.comes < clock, now) {
                Turn::Go(sent) => {
                    queue.remove(&order);
                    gate.taken(sent, Some((request.tokens as f64 * request.part) as u64));
                    gone.push((request, clock));
                }
                Turn::At(at) => {
                    let fits = (at - began).as_nanos().div_ceil(1_000_000) as u64;
                    clock = next.map_or(fits, |next| next.min(fits));
                }
                Turn::Behind => panic!("the first in the queue is not behind"),
            }
        }
        assert_eq!(gate.waiting(), 0);
        gone
    }

    fn gate(requests: u64, tokens: Option<u64>, evenly: bool) -> Gate {
        let tokens = tokens.map(|most| Allowance::new(Some(most), 1.0));
        Gate::new(Allowance::new(Some(requests), 6.0), tokens, evenly)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn no_minute_holds_more_than_the_limits(
            requests in requests(), most in 1_u64..30, most_tokens in 100_u64..1_000, evenly in any::<bool>(),
        ) {
            let gone = run(gate(most, Some(most_tokens), evenly), &requests);
            prop_assert_eq!(gone.len(), requests.len(), "every request goes");
            for (at, (_, begins)) in gone.iter().enumerate() {
                let minute: Vec<_> = gone[at..].iter().take_while(|(_, went)| went - begins < 60_000).collect();
                prop_assert!(minute.len() as u64 <= most);
                // A settlement below the reservation makes room for others.
                let used = || minute.iter().map(|(r, _)| (r.tokens as f64 * r.part) as u64);
                let alone = used().filter(|tokens| *tokens > 0).count() == 1;
                prop_assert!(used().sum::<u64>() <= most_tokens || alone);
            }
        }

        #[test]
        fn a_request_is_only_overtaken_by_more_urgent_ones_and_only_for_so_long(requests in requests(), most in 1_u64..20) {
            let gone = run(gate(most, None, false), &requests);
            for (at, (later, _)) in gone.iter().enumerate() {
                for (earlier, _) in &gone[..at] {
                    let after = i128::from(earlier.comes) - i128::from(later.comes);
                    let steps = i128::from(later.priority) - i128::from(earlier.priority);
                    prop_assert!(after <= (steps * i128::from(AGING)).max(0), "{earlier:?} before {later:?}");
                }
            }
        }

        #[test]
        fn what_is_not_sent_after_all_leaves_nothing_behind(drops in prop::collection::vec(0_u8..4, 1..60)) {
            let (mut gate, now) = (gate(5, Some(1_000), false), Instant::now());
            let mut kept = 0;
            for fate in drops {
                let order = gate.join(0, Arc::default());
                match (fate, gate.turn(order, 10, false, now)) {
                    (0 | 1, Turn::Go(sent)) => gate.unsent(sent),
                    (_, Turn::Go(_)) => kept += 1,
                    (_, _) => gate.leave(order),
                }
                prop_assert_eq!(gate.in_window(now), (kept, 10 * kept));
                prop_assert!(kept <= 5 && gate.waiting() == 0);
            }
            prop_assert_eq!(gate.in_window(now + WINDOW), (0, 0));
        }
    }

    fn goes(gate: &mut Gate, now: Instant) -> Option<Sent> {
        let order = gate.join(0, Arc::default());
        match gate.turn(order, 0, true, now) {
            Turn::Go(sent) => Some(sent),
            _ => {
                gate.leave(order);
                None
            }
        }
    }

    #[test]
    fn a_refusal_closes_the_gate_for_everybody_and_then_lets_one_through_at_a_time() {
        let (mut gate, now) = (gate(10, None, false), Instant::now());
        let sent = goes(&mut gate, now).expect("free");
        assert_eq!(gate.refused(sent, Some(MINUTE), now), MINUTE);
        assert!(goes(&mut gate, now + MINUTE / 2).is_none(), "closed");
        assert!(goes(&mut gate, now + MINUTE).is_some(), "open");
        assert!(goes(&mut gate, now + MINUTE).is_none(), "spread evenly");
        assert!(goes(&mut gate, now + MINUTE + WINDOW / 5).is_some(), "at 6 per minute, the lowest");
    }

    #[test]
    fn without_a_delay_the_gate_closes_for_longer_each_time_and_success_starts_afresh() {
        let (mut gate, mut now) = (gate(10, None, false), Instant::now());
        let mut closures = Vec::new();
        for _ in 0..7 {
            let sent = goes(&mut gate, now).expect("open");
            let closure = gate.refused(sent, None, now);
            closures.push(closure.as_secs());
            now += closure;
        }
        assert_eq!(closures, [1, 2, 4, 8, 16, 30, 30]);
        let sent = goes(&mut gate, now).expect("open");
        gate.taken(sent, None);
        now += MINUTE;
        let sent = goes(&mut gate, now).expect("open");
        assert_eq!(gate.refused(sent, None, now).as_secs(), 1);
    }

    #[test]
    fn refusals_of_what_was_sent_together_close_the_gate_once() {
        let (mut gate, now) = (gate(10, None, false), Instant::now());
        let sent: Vec<_> = (0..10).map(|_| goes(&mut gate, now).expect("free")).collect();
        let closures: Vec<_> = sent.into_iter().map(|sent| gate.refused(sent, None, now).as_secs()).collect();
        assert_eq!(closures, [1; 10]);
    }

    #[test]
    fn a_delay_that_was_too_short_twice_is_not_believed() {
        let (mut gate, mut now) = (gate(100, None, false), Instant::now());
        let mut closures = Vec::new();
        for _ in 0..5 {
            let sent = goes(&mut gate, now).expect("open");
            let closure = gate.refused(sent, Some(Duration::from_millis(100)), now);
            closures.push(closure.as_millis());
            now += closure;
        }
        assert_eq!(closures, [100, 100, 1_000, 2_000, 4_000]);
    }
}
