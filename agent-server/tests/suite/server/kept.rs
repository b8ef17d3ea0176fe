//! Options of a request apply in the next process, and queued runs that were acknowledged are not
//! lost.

use std::time::Duration;

use agent::{
    Agent, SqliteJournal, Usage,
    middleware::Approval,
    testing::{ScriptedModel, Turn},
};
use agent_server::{CallerLimits, Key, Keys, Server, ServerBuilder};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::support::{Client, Gated, Serving, call, refund};

/// A server that can be killed: its tasks are dropped.
struct Process {
    runtime: Option<Runtime>,
    serving: Option<Serving>,
}

impl Process {
    fn start(server: impl FnOnce() -> ServerBuilder) -> (Self, Client) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let serving = runtime.block_on(async { Serving::new(server()).await });
        let client = serving.client();
        (Self { runtime: Some(runtime), serving: Some(serving) }, client)
    }

    fn kill(mut self) {
        self.runtime.take().expect("it runs").shutdown_timeout(Duration::from_secs(5));
        // Only now: a dropped channel would shut the server down.
        drop(self.serving.take());
    }
}

/// Polls until a run has this status.
async fn stands(client: &Client, run: &Value, status: &str) -> Value {
    loop {
        let seen = client.get(&format!("/api/runs/{}", run["run"].as_str().expect("an id"))).await.json();
        if seen["status"] == status {
            return seen;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_message_that_waits_for_its_turn_is_answered_even_if_the_process_is_killed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("runs.db");
    let server = |model: Gated| {
        let agent = Agent::builder("support", model).build().expect("an agent");
        Server::builder().agent(agent).store(SqliteJournal::open(&path).expect("a journal"))
    };
    let (one, client) = Process::start(|| server(Gated::new([Turn::text("Never said.")])));
    let looking = Runtime::new().expect("a runtime");
    let (first, second) = looking.block_on(async {
        let first = client.start(&json!({"input": "First.", "session": "s"})).await;
        let second = client.start(&json!({"input": "Second.", "session": "s", "when_busy": "queue"})).await;
        assert_eq!(second["status"], "queued");
        (first, second)
    });
    drop(looking);
    one.kill();

    let next = Gated::new([Turn::text("One."), Turn::text("Two.")]);
    next.open();
    next.open();
    let (two, client) = Process::start(|| server(next));
    Runtime::new().expect("a runtime").block_on(async {
        assert_eq!(stands(&client, &first, "finished").await["answer"], "One.");
        assert_eq!(stands(&client, &second, "finished").await["answer"], "Two.");
    });
    two.kill();
}

#[tokio::test]
async fn a_message_that_waited_in_vain_says_why() {
    let model = Gated::new([call("c1", "A-1")]);
    let agent = Agent::builder("support", model.clone()).tool(refund).middleware(Approval::new().ask("refund"));
    let serving = Serving::of(agent).await;
    let client = serving.client();
    let first = client.start(&json!({"input": "Refund A-1.", "session": "s"})).await;
    let second = client.start(&json!({"input": "And now?", "session": "s", "when_busy": "queue"})).await;
    let third = client.start(&json!({"input": "Never mind.", "session": "s", "when_busy": "queue"})).await;
    let cancelled =
        client.post(&format!("/api/runs/{}/cancel", third["run"].as_str().expect("an id")), &json!({})).await;
    assert_eq!(cancelled.status, 202, "{}", cancelled.text);
    assert_eq!(client.rest(&third).await["status"], "cancelled");
    model.open();
    assert_eq!(client.rest(&first).await["status"], "waiting");
    let refused = client.rest(&second).await;
    assert_eq!(refused["status"], "failed", "{refused}");
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("waits for answers")), "{refused}");
    let events = client.get(&format!("/api/runs/{}/events", second["run"].as_str().expect("an id"))).await.text;
    assert!(events.contains("event: end") && events.contains("\"failed\""), "{events}");
}

#[tokio::test]
async fn the_limits_of_a_key_hold_in_the_next_process_and_for_whoever_answers() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let (ada, of_ada) = Key::generate("ada", "teapots").expect("a key");
    let (boss, of_boss) = Key::generate("boss", "teapots").expect("a key");
    let of_ada = of_ada.limits(serde_json::from_value::<CallerLimits>(json!({"tokens_per_run": 150})).expect("limits"));
    let keys = Keys::new([of_ada, of_boss]).expect("keys");
    let serve = || {
        let used = Usage::new(90, 10);
        let turns =
            [call("c1", "A-1").usage(used), Turn::text("Refunded.").usage(used), Turn::text("More.").usage(used)];
        let agent = Agent::builder("support", ScriptedModel::new(turns)).tool(refund);
        let agent = agent.middleware(Approval::new().ask("refund")).build().expect("an agent");
        Serving::new(Server::builder().agent(agent).store(journal.clone()).keys(keys.clone()))
    };
    let mut one = serve().await;
    let run = one.client().with_key(&ada).run(&json!({"input": "Refund A-1.", "session": "s"})).await;
    assert_eq!(run["status"], "waiting", "{run}");
    one.stop();
    one.stopped().await;

    let two = serve().await;
    let boss = two.client().with_key(&boss);
    let path = format!("/api/runs/{}/answers", run["run"].as_str().expect("an id"));
    let question = &run["questions"][0]["id"];
    let answered = boss.post(&path, &json!({"answers": [{"question": question, "allow": true}]})).await;
    assert_eq!(answered.status, 202, "{}", answered.text);
    let ended = boss.rest(&run).await;
    assert_ne!(ended["answer"], "Refunded.", "the run has used what it may: {ended}");
}

#[tokio::test]
async fn a_drain_does_not_let_a_waiting_message_begin_before_the_run_that_it_paused() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let serve = async |model: Gated| {
        let agent = Agent::builder("support", model).tool(refund).build().expect("an agent");
        Serving::new(Server::builder().agent(agent).store(journal.clone())).await
    };
    let model = Gated::new([call("c1", "A-1"), Turn::text("Never said.")]);
    let mut one = serve(model.clone()).await;
    let first = one.client().start(&json!({"input": "Refund A-1.", "session": "s"})).await;
    let second = one.client().start(&json!({"input": "And now?", "session": "s", "when_busy": "queue"})).await;
    one.stop();
    model.open();
    one.stopped().await;

    let next = Gated::new([Turn::text("A-1 is refunded."), Turn::text("That is all.")]);
    next.open();
    next.open();
    let two = serve(next).await;
    let client = two.client();
    assert_eq!(stands(&client, &first, "finished").await["answer"], "A-1 is refunded.");
    assert_eq!(stands(&client, &second, "finished").await["answer"], "That is all.");
}

#[tokio::test]
async fn what_a_request_brought_is_kept_no_longer_than_its_run_can_go_on() {
    let agent =
        Agent::builder("support", ScriptedModel::new([call("c1", "A-1"), Turn::text("Hello."), call("c2", "A-2")]));
    let agent = agent.tool(refund).middleware(Approval::new().ask("refund")).build().expect("an agent");
    let server = Server::builder().agent(agent).build().expect("a server");
    let serving = Serving::serve(server.clone()).await;
    let client = serving.client();
    let ask = |input: &str| json!({"input": input, "session": "s", "params": {"temperature": 0.5}, "when_waiting": "supersede"});
    let kept = async || {
        let index = server.app().journal().index("local/s").await.expect("an index");
        let asked = |key: &&String| key.starts_with("agent-server/asked/");
        index.look(|index| index.globals().keys().filter(asked).count())
    };
    assert_eq!(client.run(&ask("Refund A-1.")).await["status"], "waiting");
    assert_eq!(kept().await, 1);
    assert_eq!(client.run(&ask("Hi.")).await["status"], "finished");
    assert_eq!(kept().await, 0);
    assert_eq!(client.run(&ask("Refund A-2.")).await["status"], "waiting");
    assert_eq!(kept().await, 1);
}
