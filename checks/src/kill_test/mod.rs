//! Kills processes that run agents, with SIGKILL, at every kill point and at random moments, and
//! checks that nothing is lost and nothing is silently repeated.

pub(crate) mod child;
pub(crate) mod counter;
pub(crate) mod moments;
pub(crate) mod picture;
mod process;
pub(crate) mod report;
mod store;
pub(crate) mod trial;
pub(crate) mod world;

use std::{
    io::Write,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use agent::core::BoxError;

use self::{
    child::Orders,
    report::Report,
    store::Store,
    trial::{Plan, Whole},
};

/// Kills a run of 30 steps on three levels of agents, with tools of every effect, and resumes it in
/// other processes.
///
/// The run is a process of this program; its external effects are counted. When it is killed,
/// another process resumes it from the journal, and may be killed too. Questions about calls in
/// doubt are answered from the counter. At the end the conversation and the state of every agent
/// must equal those of an undisturbed run, every intended effect must have been executed, no effect
/// that is not repeatable twice, and a question must have been asked about every at-most-once call
/// in doubt. Exits with 1 otherwise.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of processes to kill, at random moments.
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// Store of the session.
    #[arg(long, default_value = "sqlite")]
    store: Store,
    /// Seed of the random kill points that a process chooses itself.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instead of random moments: one run per kill point, whose first process dies at that point.
    #[arg(long)]
    all_positions: bool,
    /// Number of concurrent runs. Default: one per processor.
    #[arg(long)]
    jobs: Option<usize>,
    /// Internal: run as a child process with this session directory.
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
    /// Internal: number of earlier processes of the session.
    #[arg(long, hide = true, default_value_t = 0)]
    generation: u64,
    /// Internal: kill point at which to die.
    #[arg(long, hide = true)]
    dies_at: Option<u64>,
}

/// Name of the subcommand, by which a process starts another.
pub(crate) const NAME: &str = "kill-test";

/// Returns true if nothing was lost, and nothing was silently repeated.
pub(crate) fn run(args: &Args) -> Result<bool, BoxError> {
    match &args.child {
        Some(dir) => live(args, dir).map(|()| true),
        None => kill(args),
    }
}

fn live(args: &Args, dir: &std::path::Path) -> Result<(), BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let orders = Orders { dir, store: args.store, generation: args.generation, dies_at: args.dies_at };
    Ok(runtime.block_on(child::live(&orders))?)
}

/// Runs the trials as configured; returns true if there was no fault.
fn kill(args: &Args) -> Result<bool, BoxError> {
    let whole = Whole::run(args.store)?;
    let runs = if args.all_positions { whole.moments } else { u64::MAX };
    let all = Mutex::new(Report::default());
    let (next, failed) = (AtomicU64::new(1), AtomicBool::new(false));
    let report = || all.lock().unwrap_or_else(PoisonError::into_inner);
    let enough = || failed.load(Ordering::SeqCst) || (!args.all_positions && report().kills >= args.kills);
    let work = || -> Result<(), BoxError> {
        while !enough() {
            let run = next.fetch_add(1, Ordering::SeqCst);
            if run > runs {
                break;
            }
            let plan = if args.all_positions { Plan::FirstAt(run) } else { Plan::Random };
            let came = whole.compare(args.store, &plan, args.seed.wrapping_mul(1 << 32).wrapping_add(run));
            failed.fetch_or(came.is_err(), Ordering::SeqCst);
            let mut came = came.map_err(|e| format!("run {run}: {e}"))?;
            came.faults.iter_mut().for_each(|fault| *fault = format!("run {run}: {fault}"));
            report().add(came);
            progress(&report(), &whole, args);
        }
        Ok(())
    };
    let jobs = args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let ended: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(|| work().map_err(|e| e.to_string()))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread failed".into()))).collect()
    });
    eprintln!();
    let report = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("positions            {:>9} ({} entries in the journal)", whole.moments, whole.entries);
    print!("{report}");
    let errors: Vec<_> = report.faults.iter().cloned().chain(ended.into_iter().filter_map(Result::err)).collect();
    errors.iter().take(20).for_each(|error| eprintln!("{error}"));
    Ok(errors.is_empty())
}

/// Prints the progress on one line.
fn progress(report: &Report, whole: &Whole, args: &Args) {
    let (done, all) = match args.all_positions {
        true => (report.runs, whole.moments),
        false => (report.kills, args.kills),
    };
    let what = if args.all_positions { "positions" } else { "kills" };
    eprint!("\r{done}/{all} {what}, {} faults ", report.faults.len());
    let _ = std::io::stderr().flush();
}
