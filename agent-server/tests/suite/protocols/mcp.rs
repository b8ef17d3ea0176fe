//! An agent as a Model Context Protocol server.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use agent::{
    Agent, Worker,
    journal::MemoryJournal,
    store::MemoryQueue,
    testing::{ScriptedModel, Turn},
    tools::mcp::{Client, Http, Protocol},
};
use agent_server::{Key, Keys, Scope, Server, shape};
use serde_json::{Value, json};

use super::{
    scenes::{acting, actor},
    served::{Answer, Served},
};

/// Returns the results of the agent's tool when another agent calls it with these tasks, one after
/// the other.
async fn given(served: &Served, protocol: Protocol, tasks: &[&str]) -> Vec<String> {
    let client = Client::builder("elsewhere", Http::new(format!("http://{}/mcp/actor", served.address())));
    let client = client
        .protocol(protocol)
        .elicitation_by(async |_| Ok(Some(json!({"answer": r#"{"decision": "approve"}"#}))))
        .build()
        .expect("builds");
    let calls = tasks.iter().enumerate();
    let turns: Vec<_> =
        calls.map(|(n, task)| Turn::call(&format!("c{n}"), "elsewhere_actor", json!({"task": task}))).collect();
    let model = ScriptedModel::new(turns.into_iter().chain([Turn::text("Done.")]));
    let agent = Agent::builder("caller", model).toolset(client).build().expect("builds");
    let end = agent.run("Go.").await.expect("runs").finished().expect("it finishes");
    end.history.iter().filter(|message| matches!(message, agent::Message::Tool(_))).map(agent::Message::text).collect()
}

#[tokio::test]
async fn an_agent_is_a_tool_whose_calls_are_runs_in_one_session_and_whose_questions_go_to_the_clients_user() {
    let served = Served::start().await;
    let answers = given(&served, Protocol::Handshake, &["tool", "ask"]).await;
    assert_eq!(answers, ["So it is: 17 degrees in Bern.", "So it is: refunded \"A-17\"."]);
    let sessions = served.get("/api/sessions").await.json();
    let [session] = sessions["sessions"].as_array().map(Vec::as_slice).expect("a list") else { panic!("{sessions}") };
    assert!(session["session"].as_str().is_some_and(|name| name.starts_with("mcp-")), "{session}");
    let runs = served.get("/api/runs").await.json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_client_without_handshake_is_asked_by_a_result_and_each_of_its_calls_has_a_session() {
    let served = Served::start().await;
    let answers = given(&served, Protocol::Stateless, &["tool", "ask"]).await;
    assert_eq!(answers, ["So it is: 17 degrees in Bern.", "So it is: refunded \"A-17\"."]);
    let sessions = served.get("/api/sessions").await.json();
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(2), "{sessions}");
    let runs = served.get("/api/runs").await.json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2), "the answer resumes the run");
}

#[tokio::test]
async fn a_call_of_an_agent_that_workers_run_gives_its_answer_and_its_questions_go_to_the_clients_user() {
    let (queue, journal) = (Arc::new(MemoryQueue::default()), MemoryJournal::default());
    let agent = acting().store(journal.clone()).build().expect("builds");
    let worker = Worker::builder(queue.clone()).agent(agent.clone());
    let worker = worker.shape(move |job, request| shape(job, &agent, request)).build().expect("builds");
    let working = tokio::spawn(async move { worker.run_until(pending()).await });
    let served = Served::of(Server::builder().agent(actor()).store(journal).queue(queue)).await;
    for protocol in [Protocol::Handshake, Protocol::Stateless] {
        let answers = given(&served, protocol, &["tool", "ask"]).await;
        assert_eq!(answers, ["So it is: 17 degrees in Bern.", "So it is: refunded \"A-17\"."], "{protocol:?}");
        let failed = given(&served, protocol, &["fail"]).await;
        assert!(failed[0].contains("the model fell silent"), "{failed:?}");
    }
    working.abort();
}

async fn post(served: &Served, key: &str, session: Option<&str>, body: &Value) -> Answer {
    static REQUESTS: AtomicU64 = AtomicU64::new(1);
    let span = REQUESTS.fetch_add(1, Ordering::Relaxed); // of clients with telemetry, each request has another one
    let mut headers = format!(
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\nauthorization: Bearer {key}\r\n\
         traceparent: 00-0af7651916cd43dd8448eb211c80319c-{span:016x}-01\r\n"
    );
    if let Some(session) = session {
        headers += &format!("mcp-session-id: {session}\r\n");
    }
    served.send("POST", "/mcp/actor", &headers, &body.to_string()).await
}

#[tokio::test]
async fn keys_open_their_own_connections_alone_and_only_with_the_scope() {
    let (ada, of_ada) = Key::generate("ada", "teapots").expect("a key");
    let (bob, of_bob) = Key::generate("bob", "teapots").expect("a key");
    let (eye, of_eye) = Key::generate("eye", "teapots").expect("a key");
    let keys = Keys::new([of_ada, of_bob, of_eye.scopes([Scope::Read])]).expect("keys");
    let served = Served::of(Server::builder().agent(actor()).keys(keys)).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    assert_eq!(post(&served, "agent_key_nobody", None, &hello).await.status, 401);
    assert_eq!(post(&served, &eye, None, &hello).await.status, 403);
    let opened = post(&served, &ada, None, &hello).await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let session =
        opened.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&served, &ada, Some(&session), &ready).await.status, 202);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let tools = post(&served, &ada, Some(&session), &list).await;
    assert!(tools.body.contains("actor"), "{tools:?}");
    assert_eq!(post(&served, &bob, Some(&session), &list).await.status, 404, "it is another's");
}

#[tokio::test]
async fn the_sessions_of_a_tenant_are_not_displaced_by_those_of_another() {
    let (ada, of_ada) = Key::generate("ada", "teapots").expect("a key");
    let others: Vec<_> = (0..120).map(|n| Key::generate(format!("k{n}"), "kettles").expect("a key")).collect();
    let keys = others.iter().map(|(_, key)| key.clone()).chain([of_ada]);
    let served = Served::of(Server::builder().agent(actor()).keys(Keys::new(keys).expect("keys"))).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let session_of = |opened: &Answer| {
        let session = opened.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        session.expect("a session").to_owned()
    };
    let session = session_of(&post(&served, &ada, None, &hello).await);
    let mut first = None;
    for (key, _) in &others {
        let opened = session_of(&post(&served, key, None, &hello).await);
        first = first.or(Some((key, opened)));
    }
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    assert_eq!(post(&served, &ada, Some(&session), &list).await.status, 200);
    let (key, opened) = first.expect("a key");
    assert_eq!(post(&served, key, Some(&opened), &list).await.status, 404, "each tenant has a limit");
}
