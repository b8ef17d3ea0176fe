//! State machine of one circuit, without a clock.

use std::{collections::HashSet, time::Duration};

use agent_core::{ErrorKind, event::CircuitState};
use tokio::time::Instant;

/// Settings: failures that open a circuit, and the time it stays open.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) failures: u32,
    pub(super) open_for: Duration,
    pub(super) kinds: HashSet<ErrorKind>,
}

impl Default for Settings {
    fn default() -> Self {
        let kinds = [
            ErrorKind::RateLimited,
            ErrorKind::Overloaded,
            ErrorKind::Truncated,
            ErrorKind::Timeout,
            ErrorKind::Transport,
            ErrorKind::Protocol,
            ErrorKind::Provider,
        ];
        Self { failures: 3, open_for: Duration::from_secs(60), kinds: kinds.into() }
    }
}

/// Counts consecutive failures, and decides which calls are allowed.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    state: State,
    /// Number of state changes, so that calls that began before a change do not count after it.
    era: u64,
}

#[derive(Debug)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        /// `None` if it is beyond the clock's range.
        until: Option<Instant>,
        last: ErrorKind,
    },
    HalfOpen {
        probing: bool,
        last: ErrorKind,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// Permission to make one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    era: u64,
}

/// Reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// Remaining time until a call may be allowed, if known.
    pub(super) remaining: Option<Duration>,
    /// Kind of the failure that opened the circuit.
    pub(super) last: ErrorKind,
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Answered,
    Failed(ErrorKind),
    /// The call was dropped, or failed for a reason that says nothing about the model's health.
    Unknown,
}

impl Circuit {
    pub(super) fn state(&self, now: Instant) -> CircuitState {
        match self.state {
            State::Closed { .. } => CircuitState::Closed,
            State::Open { until, .. } if until.is_none_or(|until| now < until) => CircuitState::Open,
            State::Open { .. } | State::HalfOpen { .. } => CircuitState::HalfOpen,
        }
    }

    /// Requests permission to call. The first request after the open time turns the circuit half
    /// open and becomes the probe.
    pub(super) fn enter(&mut self, now: Instant) -> Result<Ticket, Refused> {
        match &mut self.state {
            State::Closed { .. } => {}
            State::Open { until, last } => match until.map(|until| until.saturating_duration_since(now)) {
                Some(Duration::ZERO) => {
                    let last = *last;
                    self.turn(State::HalfOpen { probing: true, last });
                }
                remaining => return Err(Refused { remaining, last: *last }),
            },
            State::HalfOpen { probing, last } => {
                if std::mem::replace(probing, true) {
                    return Err(Refused { remaining: None, last: *last });
                }
            }
        }
        Ok(Ticket { era: self.era })
    }

    /// Returns a ticket, with the outcome of its call.
    pub(super) fn leave(&mut self, ticket: Ticket, outcome: Outcome, now: Instant, settings: &Settings) {
        if ticket.era != self.era {
            return;
        }
        let open = |last| State::Open { until: now.checked_add(settings.open_for), last };
        match (&mut self.state, outcome) {
            (State::Closed { failures }, Outcome::Answered) => *failures = 0,
            (State::Closed { failures }, Outcome::Failed(kind)) => {
                *failures += 1;
                if *failures >= settings.failures {
                    self.turn(open(kind));
                }
            }
            (State::HalfOpen { .. }, Outcome::Answered) => self.turn(State::default()),
            (State::HalfOpen { .. }, Outcome::Failed(kind)) => self.turn(open(kind)),
            (State::HalfOpen { probing, .. }, Outcome::Unknown) => *probing = false,
            (State::Closed { .. }, Outcome::Unknown) | (State::Open { .. }, _) => {}
        }
    }

    fn turn(&mut self, state: State) {
        self.state = state;
        self.era += 1;
    }

    /// Returns the number of state changes so far.
    pub(super) fn era(&self) -> u64 {
        self.era
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const OPEN_FOR: u64 = 10;

    /// One event in the life of a circuit.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A call requests permission.
        Enter,
        /// A running call ends; the index counts from the oldest running call.
        Leave(usize, Outcome),
        /// Seconds pass.
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let outcome = prop_oneof![
            1 => Just(Outcome::Answered),
            4 => Just(Outcome::Failed(ErrorKind::Overloaded)),
            1 => Just(Outcome::Unknown),
        ];
        let step = prop_oneof![
            3 => Just(Step::Enter),
            3 => (0usize..4, outcome).prop_map(|(who, outcome)| Step::Leave(who, outcome)),
            1 => (1..OPEN_FOR + 5).prop_map(Step::Wait),
        ];
        vec(step, 1..80)
    }

    /// Reference model of the documented behaviour: a list of the outcomes since the last state
    /// change.
    struct Naive {
        state: CircuitState,
        seen: Vec<Outcome>,
        opened: u64,
        probe: Option<usize>,
        turned: usize,
    }

    impl Naive {
        fn enter(&mut self, call: usize, now: u64) -> bool {
            if self.state == CircuitState::Open && now >= self.opened + OPEN_FOR {
                self.state = CircuitState::HalfOpen;
            }
            match self.state {
                CircuitState::Closed => true,
                CircuitState::Open => false,
                CircuitState::HalfOpen => self.probe.is_none() && self.probe.replace(call).is_none(),
            }
        }

        fn leave(&mut self, call: usize, outcome: Outcome, now: u64, most: usize) {
            let failed = |o: &Outcome| matches!(o, Outcome::Failed(_));
            let is_probe = self.probe == Some(call);
            if self.state == CircuitState::Closed && call >= self.turned {
                self.seen.push(outcome);
                let known = self.seen.iter().filter(|o| **o != Outcome::Unknown);
                if known.rev().take_while(|o| failed(o)).count() >= most {
                    (self.state, self.opened) = (CircuitState::Open, now);
                }
            } else if is_probe {
                self.probe = None;
                match outcome {
                    Outcome::Answered => {
                        (self.state, self.seen, self.turned) = (CircuitState::Closed, Vec::new(), usize::MAX);
                    }
                    Outcome::Failed(_) => (self.state, self.opened) = (CircuitState::Open, now),
                    Outcome::Unknown => {}
                }
            }
        }
    }

    proptest! {
        #[test]
        fn it_does_what_its_documentation_says(steps in steps(), most in 1u32..4) {
            let settings = Settings { failures: most, open_for: Duration::from_secs(OPEN_FOR), ..Settings::default() };
            let start = Instant::now();
            let mut circuit = Circuit::default();
            let mut naive =
                Naive { state: CircuitState::Closed, seen: Vec::new(), opened: 0, probe: None, turned: 0 };
            let (mut now, mut calls, mut under_way) = (0, 0, Vec::new());
            for step in steps {
                let at = start + Duration::from_secs(now);
                match step {
                    Step::Wait(seconds) => now += seconds,
                    Step::Enter => {
                        let ticket = circuit.enter(at);
                        prop_assert_eq!(ticket.is_ok(), naive.enter(calls, now), "call {}", calls);
                        if let Ok(ticket) = ticket {
                            under_way.push((calls, ticket));
                        }
                        calls += 1;
                    }
                    Step::Leave(who, outcome) if who < under_way.len() => {
                        let (call, ticket) = under_way.remove(who);
                        circuit.leave(ticket, outcome, at, &settings);
                        naive.leave(call, outcome, now, most as usize);
                        if naive.turned == usize::MAX {
                            naive.turned = calls; // only calls from now on count
                        }
                    }
                    Step::Leave(..) => {}
                }
            }
        }
    }

    #[test]
    fn who_is_refused_is_told_for_how_long_and_why() {
        let settings = Settings { failures: 1, ..Settings::default() };
        let (mut circuit, now) = (Circuit::default(), Instant::now());
        let last = ErrorKind::RateLimited;
        let ticket = circuit.enter(now).expect("closed");
        circuit.leave(ticket, Outcome::Failed(last), now, &settings);
        let later = now + Duration::from_secs(20);
        let remaining = Some(Duration::from_secs(40));
        assert_eq!(circuit.enter(later).expect_err("open"), Refused { remaining, last });
        let later = now + Duration::from_secs(60);
        assert_eq!(circuit.state(later), CircuitState::HalfOpen);
        circuit.enter(later).expect("the probe");
        assert_eq!(circuit.enter(later).expect_err("one probe"), Refused { remaining: None, last });
    }
}
