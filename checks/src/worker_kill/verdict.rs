//! Results of all runs, compared with an undisturbed one.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use agent::{
    PostgresJournal, RunEnd, RunRequest,
    core::{BoxError, MemoryJournal},
};
use tempfile::TempDir;

use super::name;
use crate::kill_test::{counter::Counter, moments::Moments, picture::Told, report::Report, trial::check, world};

/// Checks the sessions of so many runs.
pub(super) async fn of(
    journal: &PostgresJournal,
    dir: &Path,
    runs: u64,
    acknowledged: &HashMap<String, HashMap<u64, u64>>,
) -> Result<Report, BoxError> {
    let (whole, done, none) = (undisturbed().await?, by_run(dir)?, HashMap::new());
    let mut report = Report::default();
    for run in 0..runs {
        let session = name(run);
        let told = Told::read(journal, &session).await?;
        let of_run = told.runs.iter().filter_map(|run| done.get(run)).flatten();
        let of_run: BTreeMap<_, _> = of_run.map(|(key, times)| (key.clone(), *times)).collect();
        let acknowledged = acknowledged.get(&session).unwrap_or(&none);
        let before = report.faults.len();
        check(&whole.picture, &told, &of_run, acknowledged, &mut report);
        report.faults[before..].iter_mut().for_each(|fault| *fault = format!("{session}: {fault}"));
        report.runs += 1;
        report.steps += told.steps;
        report.acknowledged += acknowledged.len() as u64;
    }
    Ok(report)
}

/// Runs once without faults.
async fn undisturbed() -> Result<Told, BoxError> {
    let (dir, journal, moments) = (TempDir::new()?, MemoryJournal::default(), Moments::new(None));
    let agent = world::tree(journal.clone(), &Counter::open(dir.path())?, &moments)?;
    match agent.start(RunRequest::user("Go.").session(world::SESSION)).await? {
        RunEnd::Finished(_) => Ok(Told::read(&journal, world::SESSION).await?),
        other => Err(format!("the run that nobody disturbs is {}", other.as_str()).into()),
    }
}

/// Returns the external effects, by run and key.
fn by_run(dir: &Path) -> Result<HashMap<String, BTreeMap<String, u64>>, BoxError> {
    let mut runs: HashMap<_, BTreeMap<_, _>> = HashMap::new();
    for (key, times) in Counter::open(dir)?.all()? {
        let run = key.split('/').next().unwrap_or_default().to_owned();
        runs.entry(run).or_default().insert(key, times);
    }
    Ok(runs)
}
