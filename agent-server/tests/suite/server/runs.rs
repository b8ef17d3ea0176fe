//! Starting and inspecting runs.

use agent::testing::{ScriptedModel, Turn};
use agent::{Agent, SqliteJournal};
use agent_server::{CallerLimits, Key, Keys, Server};
use http::Method;
use serde_json::{Value, json};

use super::support::{Gated, Serving, call, frames, support};

#[tokio::test]
async fn a_run_is_started_looked_at_and_listed() {
    let serving = Serving::of(support([Turn::text("Hello Ada.")])).await;
    let client = serving.client();
    let agents = client.get("/api/agents").await.json();
    assert_eq!(agents["agents"][0]["name"], "support");
    assert_eq!(agents["agents"][0]["tools"][0]["name"], "refund");
    assert_eq!(client.get("/api/agents/support").await.json()["model"]["name"], "scripted");

    let run = client.start(&json!({"input": "I am Ada.", "session": "trip/2"})).await;
    assert_eq!((run["agent"].as_str(), run["session"].as_str()), (Some("support"), Some("trip/2")));
    let ended = client.rest(&run).await;
    assert_eq!(
        (&ended["status"], &ended["answer"], &ended["reason"]),
        (&json!("finished"), &json!("Hello Ada."), &json!("text"))
    );
    let listed = client.get("/api/runs?session=trip%2F2").await.json();
    assert_eq!(listed["runs"][0]["run"], run["run"]);
    assert_eq!(client.get("/api/runs?session=other").await.json()["runs"], json!([]));
}

#[tokio::test]
async fn a_start_can_be_answered_by_the_events_of_the_run() {
    let serving = Serving::of(support([Turn::text("one two three")])).await;
    let client = serving.client();
    let mut request = client.json(Method::POST, "/api/agents/support/runs", &json!({"input": "Count."}));
    request.headers_mut().insert("accept", "text/event-stream".parse().expect("a value"));
    let answer = client.answer(request).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let frames = frames(&answer.text);
    let said: String = frames.iter().filter_map(|f| f.data["kind"]["chunk"]["text"]["delta"].as_str()).collect();
    assert_eq!(said, "one two three");
    let end = frames.last().expect("an end");
    assert_eq!((end.event.as_deref(), &end.data["status"]), (Some("end"), &json!("finished")));
    assert_eq!(end.data["run"], answer.headers["agent-run"].to_str().expect("an id"));
}

#[tokio::test]
async fn the_same_idempotency_key_gives_the_same_run_in_any_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let model = ScriptedModel::new([Turn::text("Once.")]);
    let serve = || {
        let agent = Agent::builder("support", model.clone()).build().expect("an agent");
        Serving::new(Server::builder().agent(agent).store(journal.clone()))
    };
    let (one, other) = (serve().await, serve().await);
    let start = async |serving: &Serving, body: Value| {
        let client = serving.client();
        let mut request = client.json(Method::POST, "/api/agents/support/runs", &body);
        request.headers_mut().insert("idempotency-key", "7f3c".parse().expect("a value"));
        client.answer(request).await
    };
    let body = json!({"input": "Hi.", "session": "garden"});
    let first = start(&one, body.clone()).await;
    assert_eq!(first.status, 202, "{}", first.text);
    one.client().rest(&first.json()).await;
    let again = start(&one, body.clone()).await;
    assert_eq!((again.status, &again.json()["run"]), (200, &first.json()["run"]));
    assert_eq!(start(&one, json!({"input": "Another.", "session": "garden"})).await.code(), "idempotency_mismatch");
    let elsewhere = start(&other, body).await;
    assert_eq!((elsewhere.status, &elsewhere.json()["run"]), (200, &first.json()["run"]), "{}", elsewhere.text);
    assert_eq!(model.requests().len(), 1, "the model was asked once");
}

#[tokio::test]
async fn a_run_is_cancelled_paused_and_gone_on_with() {
    let model = Gated::new([Turn::text("Late.")]);
    let serving = Serving::of(Agent::builder("support", model.clone())).await;
    let client = serving.client();
    for (act, status) in [("cancel", "cancelled"), ("pause", "finished")] {
        let run = client.start(&json!({"input": "Hi."})).await;
        let id = run["run"].as_str().expect("an id");
        assert_eq!(client.post(&format!("/api/runs/{id}/{act}"), &json!({})).await.status, 202);
        if act == "pause" {
            model.open(); // a pause takes effect between steps, and this is the last one
        }
        assert_eq!(client.rest(&run).await["status"], status);
    }
    let model = Gated::new([Turn::text("Late.")]);
    let serving = Serving::of(Agent::builder("support", model.clone())).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Hi."})).await;
    let id = run["run"].as_str().expect("an id");
    client.post(&format!("/api/runs/{id}/cancel"), &json!({})).await;
    assert_eq!(client.rest(&run).await["status"], "cancelled");
    assert_eq!(client.post(&format!("/api/runs/{id}/cancel"), &json!({})).await.status, 200, "it is cancelled already");
    let resumed = client.post(&format!("/api/runs/{id}/resume"), &json!({})).await;
    assert_eq!(resumed.status, 202, "{}", resumed.text);
    model.open();
    let ended = client.rest(&run).await;
    assert_eq!((&ended["status"], &ended["answer"]), (&json!("finished"), &json!("Late.")));
    assert_eq!(client.post(&format!("/api/runs/{id}/resume"), &json!({})).await.code(), "over");
}

#[tokio::test]
async fn a_busy_session_rejects_steers_queues_and_forks() {
    let model = Gated::new(["One.", "Two.", "Three.", "Four."].map(Turn::text));
    let serving = Serving::of(Agent::builder("support", model.clone())).await;
    let client = serving.client();
    let body = |busy: Option<&str>| json!({"input": "Hi.", "session": "garden", "when_busy": busy});
    let run = client.start(&body(None)).await;
    let rejected = client.post("/api/agents/support/runs", &body(None)).await;
    assert_eq!((rejected.status, rejected.code().as_str()), (409, "busy"));

    let steered = client.post("/api/agents/support/runs", &body(Some("steer"))).await;
    assert_eq!((steered.status, &steered.json()["run"]), (200, &run["run"]), "{}", steered.text);

    let queued = client.start(&body(Some("queue"))).await;
    assert_eq!(queued["status"], "queued");
    let forked = client.start(&body(Some("fork"))).await;
    assert_ne!(forked["session"], "garden");
    // One model call per run, and another one of the first run for the steering message.
    for _ in 0..4 {
        model.open();
    }
    for run in [&run, &queued, &forked] {
        let ended = client.rest(run).await;
        assert_eq!(ended["status"], "finished", "{ended}");
    }
    let found = client.get(&format!("/api/runs/{}", forked["run"].as_str().expect("an id"))).await.json();
    assert_eq!(found["session"], forked["session"]);
}

#[tokio::test]
async fn a_key_is_limited_in_requests_and_in_runs() {
    let (secret, key) = Key::generate("ada", "t").expect("a key");
    let mut limits = CallerLimits::default();
    (limits.requests_per_second, limits.runs) = (Some(1.0), Some(1));
    let keys = Keys::new([key.limits(limits)]).expect("keys");
    let model = Gated::new([Turn::text("Late.")]);
    let agent = Agent::builder("support", model.clone()).build().expect("an agent");
    let serving = Serving::new(Server::builder().agent(agent).keys(keys)).await;
    let client = serving.client().with_key(&secret);
    let run = client.start(&json!({"input": "Hi."})).await;
    let more = client.post("/api/agents/support/runs", &json!({"input": "Hi."})).await;
    assert_eq!((more.status, more.code().as_str()), (429, "too_many_runs"));
    assert!(more.headers.contains_key("retry-after"));
    model.open();
    client.rest(&run).await;
    let mut refused = None;
    for _ in 0..20 {
        let answer = client.get("/api/agents").await;
        refused = refused.or((answer.status == 429).then(|| answer.code()));
    }
    assert_eq!(refused.as_deref(), Some("rate_limited"));
}

#[tokio::test]
async fn what_a_key_may_use_holds_after_a_pause_and_in_a_fork() {
    let (secret, key) = Key::generate("ada", "t").expect("a key");
    let mut limits = CallerLimits::default();
    limits.tokens_per_run = Some(0);
    let (free, unlimited) = Key::generate("free", "t").expect("a key");
    let keys = Keys::new([key.limits(limits), unlimited]).expect("keys");
    let agent =
        support([Turn::text("Hello."), call("c1", "A-1"), Turn::text("Never said."), Turn::text("Never said.")]);
    let serving = Serving::new(Server::builder().agent(agent.build().expect("an agent")).keys(keys)).await;
    let (limited, free) = (serving.client().with_key(&secret), serving.client().with_key(&free));
    free.run(&json!({"input": "Hi.", "session": "greeting"})).await;
    let fork = limited.post("/api/sessions/greeting/fork", &json!({"step": 1, "into": "greeting-2"})).await;
    assert_eq!(fork.status, 202, "{}", fork.text);
    assert_eq!(limited.rest(&fork.json()).await["reason"], "budget");
    let run = free.run(&json!({"input": "Refund A-1.", "session": "garden"})).await;
    assert_eq!(run["status"], "waiting", "{run}");
    let id = run["run"].as_str().expect("an id");
    let allow = json!({"answers": [{"question": "c1/approval", "allow": true}]});
    assert_eq!(limited.post(&format!("/api/runs/{id}/answers"), &allow).await.status, 202);
    assert_eq!(limited.rest(&run).await["reason"], "budget");
}

#[tokio::test]
async fn what_is_another_request_each_time_takes_no_idempotency_key() {
    let serving = Serving::of(support([Turn::text("Done.")])).await;
    let client = serving.client();
    for busy in ["steer", "fork"] {
        let body = json!({"input": "Hi.", "session": "garden", "when_busy": busy});
        let (parts, body) = client.json(Method::POST, "/api/agents/support/runs", &body).into_parts();
        let mut request = http::Request::from_parts(parts, body);
        request.headers_mut().insert("idempotency-key", "k".parse().expect("a header"));
        let refused = client.answer(request).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"), "{}", refused.text);
    }
}

#[tokio::test]
async fn health_readiness_and_figures_are_told() {
    let serving = Serving::of(support([Turn::text("Hello.")])).await;
    let client = serving.client();
    client.run(&json!({"input": "Hi."})).await;
    assert_eq!(client.get("/health").await.json()["status"], "ok");
    assert_eq!(client.get("/ready").await.json(), json!({"status": "ready"}));
    let figures = client.get("/metrics").await.text;
    assert!(figures.contains(r#"agent_runs_ended_total{agent="support",status="finished"} 1"#), "{figures}");
    assert!(figures.contains("agent_runs_under_way 0"), "{figures}");
    assert!(
        figures.contains(r#"agent_http_requests_total{route="/api/agents/{agent}/runs",status="202"} 1"#),
        "{figures}"
    );
}

#[tokio::test]
async fn a_repeated_key_finds_the_run_that_is_active_in_another_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let model = Gated::new([Turn::text("Done.")]);
    let serve = async || {
        let agent = Agent::builder("support", model.clone()).build().expect("an agent");
        Serving::new(Server::builder().agent(agent).store(journal.clone())).await
    };
    let (one, two) = (serve().await, serve().await);
    let start = async |serving: &Serving| {
        let client = serving.client();
        let body = json!({"input": "Hi.", "session": "garden"});
        let mut request = client.json(http::Method::POST, "/api/agents/support/runs", &body);
        request.headers_mut().insert("idempotency-key", "7f3c".parse().expect("a value"));
        client.answer(request).await
    };
    let first = start(&one).await.json();
    let again = start(&two).await;
    assert_eq!((again.status, &again.json()["run"]), (200, &first["run"]), "{}", again.text);
    model.open();
    assert_eq!(two.client().rest(&again.json()).await["answer"], "Done.");
}

#[tokio::test]
async fn users_of_a_tenant_do_not_share_their_keys_for_requests() {
    let keys: Vec<_> = ["ada", "bob"].map(|name| Key::generate(name, "teapots").expect("a key")).into();
    let agent = Agent::builder("support", ScriptedModel::new(["One.", "Two."].map(Turn::text)));
    let server = Server::builder().agent(agent.build().expect("an agent"));
    let rows = keys.iter().map(|(_, key)| key.clone());
    let serving = Serving::new(server.keys(Keys::new(rows).expect("keys"))).await;
    let mut runs = Vec::new();
    for (secret, _) in &keys {
        let client = serving.client().with_key(secret);
        let body = json!({"input": "Hi.", "session": "garden"});
        let mut request = client.json(http::Method::POST, "/api/agents/support/runs", &body);
        request.headers_mut().insert("idempotency-key", "1".parse().expect("a value"));
        let run = client.answer(request).await;
        assert_eq!(run.status, 202, "{}", run.text);
        runs.push(client.rest(&run.json()).await["answer"].clone());
    }
    assert_eq!(runs, ["One.", "Two."]);
}
