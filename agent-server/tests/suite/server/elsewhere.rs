//! A run that is driven by another process.

use agent::{Agent, SqliteJournal, testing::Turn};
use agent_server::Server;
use serde_json::json;

use super::support::{Gated, Serving, frames};

#[tokio::test]
async fn a_run_of_another_process_is_followed_to_its_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let model = Gated::new([Turn::text("Done.")]);
    let serve = async || {
        let agent = Agent::builder("support", model.clone()).build().expect("an agent");
        Serving::new(Server::builder().agent(agent).store(journal.clone())).await
    };
    let (one, two) = (serve().await, serve().await);
    let run = one.client().start(&json!({"input": "Hi.", "session": "s"})).await;
    let path = format!("/api/runs/{}/events", run["run"].as_str().expect("an id"));
    let (here, there) = (one.client(), two.client());
    let following = tokio::spawn({
        let path = path.clone();
        async move { there.get(&path).await.text }
    });
    let waiting = tokio::spawn({
        let (there, run) = (two.client(), run.clone());
        async move { there.rest(&run).await }
    });
    assert_eq!(two.client().get(&path.replace("/events", "")).await.json()["status"], "stopped");
    model.open();
    let told = frames(&following.await.expect("no panic"));
    let end = told.last().expect("an end");
    assert_eq!((end.event.as_deref(), &end.data["status"]), (Some("end"), &json!("finished")));
    assert_eq!(waiting.await.expect("no panic")["answer"], "Done.");
    let durable = |frames: &[super::support::Frame]| -> Vec<_> {
        frames.iter().filter_map(|frame| frame.id.clone()).filter(|id| id.ends_with(".0")).collect()
    };
    assert_eq!(durable(&told), durable(&frames(&here.get(&path).await.text)), "it missed nothing");
}
