//! Simulates runs of a tree of agents with injected faults of every kind, one run per seed.

mod tree;

use std::{
    io::Write,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use agent::exec::testing::{Broken, Simulated, Simulation};

/// Simulates a run of a tree of agents for each seed, with injected faults of every kind.
///
/// Models and tools fail, stall and return garbage, processes die, the run is cancelled and paused,
/// in an order that the seed determines. Checks at the end that every call has its result, that the
/// journal agrees, that nothing was silently repeated, and that usage adds up. Exits with 1 if a
/// seed fails.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Print the journal of each run, one entry per line.
    #[arg(long)]
    trace: bool,
    /// Number of concurrent runs. Default: one per processor.
    #[arg(long)]
    jobs: Option<usize>,
}

/// Totals over all simulations.
#[derive(Debug, Default)]
struct Total {
    runs: u64,
    processes: u64,
    crashes: u64,
    stops: u64,
    failures: u64,
    faults: u64,
    questions: u64,
    deeds: u64,
    entries: u64,
    failed: Vec<(u64, Broken)>,
}

impl Total {
    fn add(&mut self, seed: u64, simulated: Result<Simulated, Broken>) {
        self.runs += 1;
        match simulated {
            Ok(simulated) => {
                self.processes += u64::from(simulated.processes);
                self.crashes += u64::from(simulated.crashes);
                self.stops += u64::from(simulated.stops);
                self.failures += u64::from(simulated.failures);
                self.faults += simulated.faults;
                self.questions += u64::from(simulated.questions);
                self.deeds += simulated.deeds as u64;
                self.entries += simulated.trace.len() as u64;
            }
            Err(e) => self.failed.push((seed, e)),
        }
    }
}

fn simulate(seed: u64) -> Result<Simulated, Broken> {
    Simulation::new(seed).run(tree::tree)
}

/// Returns true if no seed fails.
pub(crate) fn run(args: &Args) -> bool {
    let (next, total) = (AtomicU64::new(args.first), Mutex::new(Total::default()));
    let end = args.first.saturating_add(args.seeds);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seed >= end {
                break;
            }
            let simulated = simulate(seed);
            if args.trace {
                let trace = simulated.as_ref().map_or_else(|broken| &broken.trace, |simulated| &simulated.trace);
                trace.iter().for_each(|line| println!("{seed}: {line}"));
            }
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            total.add(seed, simulated);
            if total.runs % 25 == 0 {
                eprint!("\r{}/{} seeds, {} failed ", total.runs, args.seeds, total.failed.len());
                let _ = std::io::stderr().flush();
            }
        }
    };
    let jobs = args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    thread::scope(|scope| (0..jobs.max(1)).for_each(|_| drop(scope.spawn(work))));
    eprintln!();
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(&total);
    total.failed.is_empty()
}

fn report(total: &Total) {
    println!("seeds                    {:>9}, failed {}", total.runs, total.failed.len());
    println!("processes                {:>9}, died {}", total.processes, total.crashes);
    println!("cancelled or paused      {:>9}", total.stops);
    println!("failed and gone on with  {:>9}", total.failures);
    println!("faults                   {:>9}", total.faults);
    println!("things done outside      {:>9}", total.deeds);
    println!("questions answered       {:>9}", total.questions);
    println!("journal entries          {:>9}", total.entries);
    for (seed, error) in total.failed.iter().take(10) {
        eprintln!("seed {seed}: {error}");
        eprintln!("  again: agent-checks simulate --first {seed} --seeds 1 --jobs 1");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_hundred_worlds_do_not_break_a_run() {
        for seed in 0..200 {
            if let Err(e) = super::simulate(seed) {
                panic!("seed {seed}: {e}");
            }
        }
    }
}
