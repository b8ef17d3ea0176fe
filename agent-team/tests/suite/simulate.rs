//! Random teams whose processes die at random entries.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::MemoryJournal;
use agent_team::TeamEnd;

use crate::common::{
    crew::{Crew, Record},
    mortal::Mortal,
};

/// Seeds per run: 200, or as many as `AGENT_TEAM_SEEDS` says.
fn seeds() -> u64 {
    std::env::var("AGENT_TEAM_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

type Effects = Arc<Mutex<Vec<(String, String)>>>;

fn record(effects: &Effects) -> Record {
    let effects = effects.clone();
    Arc::new(move |task, key| effects.lock().expect("free").push((task.to_owned(), key.to_owned())))
}

/// A number below `most` for a seed and a purpose.
fn pick(seed: u64, purpose: u64, most: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(purpose.wrapping_mul(0xbf58_476d_1ce4_e5b9));
    x = (x ^ (x >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 29)) % most
}

/// Runs a crew in up to three processes that die, and then in one that does not.
async fn run(crew: Crew) {
    let (journal, effects) = (MemoryJournal::default(), Effects::default());
    for death in 0..pick(crew.seed, 7, 4) {
        let dies_at = 1 + pick(crew.seed, 10 + death, 60 * crew.tasks as u64);
        let process = Mortal::new(journal.clone(), dies_at, pick(crew.seed, 20 + death, 2) == 0);
        let team = crew.team(process.clone(), record(&effects));
        let ended: Option<TeamEnd> = tokio::select! {
            biased;
            () = process.died() => None,
            end = team.start(Crew::request()) => Some(end.expect("runs")),
        };
        drop(team);
        tokio::time::sleep(Duration::from_millis(1)).await; // lets aborted tasks end
        if ended.is_some() {
            break;
        }
    }
    let team = crew.team(journal, record(&effects));
    let end = team.start(Crew::request()).await.expect("runs");
    let effects = effects.lock().expect("free").clone();
    crew.check(&team, &end, &effects).await;
}

#[tokio::test(start_paused = true)]
async fn random_teams_lose_and_double_nothing_whenever_their_processes_die() {
    for seed in 0..seeds() {
        let members = 1 + pick(seed, 1, 5) as usize;
        let tasks = 1 + pick(seed, 2, 10) as usize;
        run(Crew { seed, members, tasks }).await;
    }
}
