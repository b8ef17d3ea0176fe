//! Faults injected into workers, connections and the database.

use std::{
    fmt,
    io::{self, Write},
    time::Duration,
};

use agent::testing::SeededRng;
use tokio::time::sleep;

use super::{LEASE, database::Database, proxy::Proxy, worker::Workers};

/// Chooses and injects the next fault.
pub(super) struct Chaos {
    rng: SeededRng,
    shares: Shares,
    pub(super) done: Done,
}

/// Percentages of faults other than kills.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Shares {
    /// Percentage of faults that stop a worker for longer than its lease, and continue it.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..33))]
    stops: u64,
    /// Percentage of faults that stall or cut the workers' connections.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(0..33))]
    cuts: u64,
    /// Percentage of faults that stop the database immediately, and restart it.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(0..33))]
    restarts: u64,
}

/// Number of injected faults of each kind.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) kills: u64,
    stops: u64,
    stalls: u64,
    cuts: u64,
    restarts: u64,
}

impl Chaos {
    pub(super) fn new(seed: u64, shares: Shares) -> Self {
        Self { rng: SeededRng::new(seed), shares, done: Done::default() }
    }

    /// Waits a moment, and injects one fault.
    pub(super) async fn strike(&mut self, workers: &mut Workers, proxy: &Proxy, database: &Database) -> io::Result<()> {
        sleep(Duration::from_millis(50 + self.rng.below(800))).await;
        let one = usize::try_from(self.rng.below(workers.number() as u64)).unwrap_or(0);
        let (blow, Shares { stops, cuts, restarts }) = (self.rng.below(100), self.shares);
        if blow < stops {
            workers.freeze(one, true);
            sleep(LEASE + Duration::from_millis(500 + self.rng.below(1_500))).await;
            workers.freeze(one, false);
            self.done.stops += 1;
        } else if blow < stops + cuts && self.rng.below(2) == 0 {
            proxy.stall(true);
            sleep(Duration::from_millis(500 + self.rng.below(3_000))).await;
            proxy.stall(false);
            self.done.stalls += 1;
        } else if blow < stops + cuts {
            proxy.cut();
            self.done.cuts += 1;
        } else if blow < stops + cuts + restarts {
            database.down()?;
            sleep(Duration::from_millis(self.rng.below(1_000))).await;
            database.up()?;
            self.done.restarts += 1;
        } else {
            workers.kill(one)?;
            self.done.kills += 1;
        }
        eprint!("\r{} kills ", self.done.kills);
        io::stderr().flush()
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "workers stopped beyond their lease {:>9}", self.stops)?;
        writeln!(f, "connections stalled, and cut       {:>9}, {}", self.stalls, self.cuts)?;
        writeln!(f, "the database stopped at once       {:>9}", self.restarts)
    }
}
