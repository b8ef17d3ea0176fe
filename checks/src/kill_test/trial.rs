//! One run, killed and resumed until it ends, and its faults.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use agent::{
    core::{BoxError, Effect},
    testing::SeededRng,
};
use tempfile::TempDir;

use super::{
    counter::Counter,
    picture::{Picture, Told},
    process::{self, Death},
    report::Report,
    store::Store,
    world::SESSION,
};

/// Undisturbed run, as the reference.
pub(crate) struct Whole {
    picture: Picture,
    pub(crate) entries: u64,
    pub(crate) moments: u64,
    time: Duration,
}

/// Schedule of the deaths.
pub(crate) enum Plan {
    /// The first process at this kill point, later ones occasionally.
    FirstAt(u64),
    /// Every process at a random moment, by itself or from outside.
    Random,
}

impl Whole {
    /// Runs once without a death.
    pub(crate) fn run(store: Store) -> Result<Self, BoxError> {
        let dir = TempDir::new()?;
        let begun = Instant::now();
        let lived = process::live(dir.path(), store, 0, Death::None)?;
        let time = begun.elapsed();
        let told = read(&dir, store, 1)?;
        Ok(Self {
            entries: told.digests.len() as u64,
            moments: lived.moments.ok_or("the run did not come to its end")?,
            picture: told.picture,
            time,
        })
    }

    fn next_death(&self, plan: &Plan, generation: u64, rng: &mut SeededRng) -> Death {
        match plan {
            Plan::FirstAt(moment) if generation == 0 => Death::At(*moment),
            Plan::FirstAt(_) if rng.chance(75) => Death::None,
            Plan::Random if rng.chance(50) => {
                Death::After(self.time.mul_f64(f64::from(u32::try_from(rng.below(1000)).unwrap_or(0)) / 1000.0))
            }
            _ => Death::At(1 + rng.below(self.moments)),
        }
    }

    /// Runs with deaths, and compares the result.
    pub(crate) fn compare(&self, store: Store, plan: &Plan, seed: u64) -> Result<Report, BoxError> {
        let (dir, mut rng) = (TempDir::new()?, SeededRng::new(seed));
        let (mut report, mut acknowledged) = (Report { runs: 1, ..Report::default() }, HashMap::new());
        let mut generation = 0;
        loop {
            let lived = process::live(dir.path(), store, generation, self.next_death(plan, generation, &mut rng))?;
            acknowledged.extend(lived.acknowledged);
            generation += 1;
            if !lived.killed {
                break;
            }
            report.kills += 1;
        }
        let told = read(&dir, store, generation)?;
        report.steps += told.steps;
        report.acknowledged += acknowledged.len() as u64;
        check(&self.picture, &told, &Counter::open(dir.path())?.all()?, &acknowledged, &mut report);
        if !report.faults.is_empty() {
            report.faults.push(format!("  kept in {}", dir.keep().display()));
        }
        Ok(report)
    }
}

/// Checks that a session has the same result as an undisturbed run, and that its external effects
/// were intended, and executed no more often than allowed.
pub(crate) fn check(
    whole: &Picture,
    told: &Told,
    done: &BTreeMap<String, u64>,
    acknowledged: &HashMap<u64, u64>,
    report: &mut Report,
) {
    let lost = acknowledged.iter().filter(|(seq, digest)| told.digests.get(seq) != Some(digest)).count();
    report.lost += lost as u64;
    if lost > 0 {
        report.faults.push(format!("{lost} acknowledged entries are lost"));
    }
    if let Some(difference) = told.picture.differs(whole) {
        report.faults.push(format!("it differs from the run that nobody killed: {difference}"));
    }
    for key in told.intents.keys().filter(|key| !done.contains_key(*key)) {
        report.faults.push(format!("{key} was meant and never done"));
    }
    for key in done.keys().filter(|key| !told.intents.contains_key(*key)) {
        report.faults.push(format!("{key} was done and never meant"));
    }
    for (key, effect) in &told.intents {
        let again = done.get(key).copied().unwrap_or_default().saturating_sub(1);
        report.count(*effect, again);
        if again > 0 && matches!(effect, Effect::Reconcilable | Effect::AtMostOnce) {
            report.faults.push(format!("{key} was done {again} times too often"));
        }
    }
    report.questions += told.asked.len() as u64;
    for doubt in told.doubts.difference(&told.asked) {
        report.unasked += 1;
        report.faults.push(format!("nobody was asked about {doubt}"));
    }
    for key in &told.asked_again {
        report.faults.push(format!("{key} was asked about again, though nobody began it anew"));
    }
    for question in told.asked.difference(&told.doubts) {
        report.faults.push(format!("{question} was asked without need"));
    }
}

fn read(dir: &TempDir, store: Store, generation: u64) -> Result<Told, BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async { Told::read(&*store.open(dir.path(), generation).await?, SESSION).await })?)
}
