//! Server that is killed repeatedly during active runs; its clients reconnect, and answer
//! questions.

use std::{path::Path, sync::Arc, time::Duration};

use agent::{
    core::{BoxError, tool::Doubt},
    testing::SeededRng,
};
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};

use super::{
    child::{Served, What},
    clerk,
    client::{self, Viewer},
};
use crate::kill_test::counter::Counter;

/// Minimum lifetime of a server, and range of its random extension, in milliseconds. Some live long
/// enough to resume their predecessor's runs, whose lease must expire first.
const LIVES: (u64, u64) = (300, 5_000);
/// Delay before a client reconnects to a server that is down.
const PATIENCE: Duration = Duration::from_millis(50);

/// Run as seen by its client.
struct Seen {
    run: String,
    viewer: Viewer,
    /// Number of rejected answers to an open question.
    refused: usize,
}

/// Returns true if every run ended, each client saw each durable event once and in order, every
/// answer was accepted, and each external effect was executed once.
pub(super) async fn check(kills: usize, runs: usize) -> Result<bool, BoxError> {
    let dir = tempfile::tempdir()?;
    let mut served = Served::begin(What::Agent, Some(dir.path()), 0).await?;
    let address: Arc<str> = served.address.as_str().into();
    let port = address.rsplit(':').next().unwrap_or_default().parse()?;
    let (ending, is_ending) = watch::channel(false);
    let counter = Counter::open(dir.path())?;
    let client = |n| tokio::spawn(keep_running(address.clone(), counter.clone(), n, is_ending.clone()));
    let clients: Vec<_> = (0..runs).map(client).collect();
    let mut rng = SeededRng::new(1);
    for _ in 0..kills {
        sleep(Duration::from_millis(LIVES.0 + rng.below(LIVES.1))).await;
        served.kill().await?;
        served = Served::begin(What::Agent, Some(dir.path()), port).await?;
    }
    ending.send_replace(true);
    let mut seen = Vec::new();
    for client in clients {
        seen.extend(client.await??);
    }
    verdict(&address, dir.path(), kills, &seen).await
}

async fn verdict(address: &str, dir: &Path, kills: usize, seen: &[Seen]) -> Result<bool, BoxError> {
    let mut wrong = 0;
    for Seen { run, viewer, .. } in seen {
        wrong += usize::from(!viewer.agrees(&client::whole(address, run).await?));
    }
    let done = Counter::open(dir)?.all()?;
    let twice = done.values().filter(|times| **times > 1).count();
    let refused: usize = seen.iter().map(|seen| seen.refused).sum();
    println!(
        "killed: {kills} times; {} runs ended, {wrong} clients saw something else, {refused} answers were refused; of {} effects {twice} came twice",
        seen.len(),
        done.len()
    );
    Ok(wrong == 0 && twice == 0 && refused == 0 && done.len() == seen.len())
}

/// Starts one run after the other until the kills are over, and follows each to its end.
async fn keep_running(
    address: Arc<str>,
    counter: Counter,
    client: usize,
    is_ending: watch::Receiver<bool>,
) -> Result<Vec<Seen>, BoxError> {
    let mut all = Vec::new();
    while all.is_empty() || !*is_ending.borrow() {
        let key = format!("{client}-{}", all.len());
        // The same key gives the same run, even from the next server.
        let run = loop {
            match client::start(&address, clerk::NAME, "A letter.", &key).await {
                Ok(run) => break run,
                Err(_) => sleep(PATIENCE).await,
            }
        };
        let mut seen = Seen { run, viewer: Viewer::default(), refused: 0 };
        while !seen.viewer.is_over() {
            // If the connection fails, the next one resumes at the last event.
            if seen.viewer.view(&address, &seen.run).await.is_err() || seen.viewer.rests.is_none() {
                sleep(PATIENCE).await;
            } else if let Some(run) = &seen.viewer.rests
                && run["status"] == "waiting"
            {
                seen.refused += usize::from(answer(&address, &counter, run).await.unwrap_or(false));
                sleep(PATIENCE).await;
            }
        }
        all.push(seen);
    }
    Ok(all)
}

/// Answers a run's questions, as a person who inspected the external effects; returns true if an
/// answer was rejected.
async fn answer(address: &str, counter: &Counter, run: &Value) -> std::io::Result<bool> {
    let answers = run["questions"].as_array().into_iter().flatten().map(|question| {
        let value = match question["kind"].as_str() {
            Some(Doubt::KIND) => {
                let happened = question["payload"]["idempotency_key"].as_str().is_some_and(|key| counter.has(key));
                if happened { json!({"happened": "stamped"}) } else { json!("did_not") }
            }
            _ => json!(["Yes."]),
        };
        json!({"question": question["id"], "digest": question["digest"], "value": value})
    });
    let path = format!("/api/runs/{}/answers", run["run"].as_str().unwrap_or_default());
    let (_, said) =
        client::ask(address, "POST", &path, "", &json!({"answers": answers.collect::<Vec<_>>()}).to_string()).await?;
    if said["error"]["code"] == "answer_refused" {
        eprintln!("{said}");
        return Ok(true);
    }
    Ok(false)
}
