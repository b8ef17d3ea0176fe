//! Daily and monthly spending limits of keys.

use std::time::{Duration, SystemTime};

use agent::{
    Agent, SqliteJournal, SqliteLedger, Usage,
    model::PriceTable,
    testing::{ScriptedModel, Turn},
};
use agent_server::{Key, Keys, Scope, Server, ServerBuilder, Spending};
use http::Method;
use serde_json::json;

use super::support::{Serving, support};

/// Price table: a millionth of a dollar per token.
struct Plain;

impl PriceTable for Plain {
    fn cost(&self, _: &str, usage: &Usage) -> Option<u64> {
        Some(usage.total())
    }
}

/// Returns Ada's key with this daily limit, and Bob's.
fn keys(cost_per_day: u64) -> (Keys, [String; 2]) {
    let (ada, of_ada) = Key::generate("ada", "teapots").expect("a key");
    let (bob, of_bob) = Key::generate("bob", "teapots").expect("a key");
    let limits = serde_json::from_value(json!({"cost_per_day": cost_per_day})).expect("limits");
    (Keys::new([of_ada.limits(limits), of_bob]).expect("keys"), [ada, bob])
}

/// Waits for the next day if little is left of this one: a test must spend and read within one day.
async fn within_a_day() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let left = 86_400 - now % 86_400;
    if left < 60 {
        tokio::time::sleep(Duration::from_secs(left + 1)).await;
    }
}

/// Returns an answer that costs 100,000 millionths of a dollar.
fn dear() -> Turn {
    Turn::text("Hello.").usage(Usage::new(60_000, 40_000))
}

#[tokio::test]
async fn a_key_that_has_spent_its_money_begins_nothing_in_any_process() {
    within_a_day().await;
    let dir = tempfile::tempdir().expect("a directory");
    let (keys, [ada, bob]) = keys(100_000);
    let process = || {
        let agent = Agent::builder("support", ScriptedModel::new([dear(), dear()])).build().expect("an agent");
        let ledger = SqliteLedger::open(dir.path().join("ledger.db")).expect("a ledger");
        let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
        Server::builder().agent(agent).store(journal).keys(keys.clone()).spending(Spending::new(ledger, Plain))
    };
    let (one, other) = (Serving::new(process()).await, Serving::new(process()).await);
    let (ada, bob) = (one.client().with_key(&ada), (other.client().with_key(&bob), other.client().with_key(&ada)));
    let mut first = ada.json(Method::POST, "/api/agents/support/runs", &json!({"input": "Hi."}));
    first.headers_mut().insert("idempotency-key", "k1".parse().expect("a header"));
    let again = first.clone();
    let run = ada.answer(first).await.json();
    assert_eq!(ada.rest(&run).await["status"], "finished", "one answer fits");

    let (bob, ada_there) = bob;
    let refused = ada_there.post("/api/agents/support/runs", &json!({"input": "Hi."})).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "spent"), "{}", refused.text);
    assert!(refused.text.contains("cost_per_day") && refused.headers.contains_key("retry-after"), "{}", refused.text);
    let completion = json!({"model": "support", "messages": [{"role": "user", "content": "Hi."}]});
    let refused = ada_there.post("/v1/chat/completions", &completion).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "insufficient_quota"), "{}", refused.text);
    assert_eq!(refused.json()["error"]["type"], "insufficient_quota");
    assert_eq!(refused.headers["x-should-retry"], "false");
    assert_eq!(ada.answer(again).await.json()["run"], run["run"], "what is there is given again");

    let spent = ada_there.get("/api/spending").await.json();
    let day = &spent["spending"][0];
    assert_eq!(
        (&day["of"], &day["per"], &day["limit"], &day["spent"]),
        (&json!("key"), &json!("day"), &json!(100_000), &json!(100_000))
    );
    assert_eq!(bob.get("/api/spending").await.json()["spending"], json!([]), "nothing limits Bob");
    assert_eq!(bob.run(&json!({"input": "Hi."})).await["status"], "finished");
}

#[tokio::test]
async fn a_run_ends_where_the_money_of_its_key_does() {
    let (keys, [ada, _]) = keys(60_000);
    let turns = [super::support::call("c1", "A-1"), Turn::text("Never said.")];
    let turns = turns.map(|turn| turn.usage(Usage::new(30_000, 30_000)));
    let agent = Agent::builder("support", ScriptedModel::new(turns)).tool(super::support::refund);
    let ledger = agent::budget::MemoryLedger::new();
    let server = Server::builder().agent(agent.build().expect("an agent")).keys(keys);
    let serving = Serving::new(server.spending(Spending::new(ledger, Plain))).await;
    let client = serving.client().with_key(&ada);
    let run = client.run(&json!({"input": "Refund A-1."})).await;
    assert_eq!((&run["status"], &run["reason"]), (&json!("finished"), &json!("budget")), "{run}");
}

#[tokio::test]
async fn figures_say_what_keys_and_tenants_have_spent_and_may_still_spend_and_name_no_key_but_by_its_name() {
    within_a_day().await;
    let (ada, of_ada) = Key::generate("ada", "teapots").expect("a key");
    let (eye, of_eye) = Key::generate("eye", "teapots").expect("a key");
    let limits = |limits| serde_json::from_value(limits).expect("limits");
    let rows = [of_ada.limits(limits(json!({"cost_per_day": 250_000}))), of_eye.scopes([Scope::Metrics])];
    let tenant = serde_json::from_value(json!({"cost_per_month": 2_000_000})).expect("limits");
    let keys = Keys::new(rows).expect("keys").tenant("teapots", tenant);
    let agent = Agent::builder("support", ScriptedModel::new([dear()])).build().expect("an agent");
    let ledger = agent::budget::MemoryLedger::new();
    let server = Server::builder().agent(agent).keys(keys).spending(Spending::new(ledger, Plain));
    let serving = Serving::new(server).await;
    let (ada_there, eye_there) = (serving.client().with_key(&ada), serving.client().with_key(&eye));
    assert_eq!(ada_there.run(&json!({"input": "Hi."})).await["status"], "finished");
    let figures = eye_there.get("/metrics").await.text;
    for line in [
        r#"agent_spent_dollars{tenant="teapots",key="ada",per="day"} 0.1"#,
        r#"agent_unspent_dollars{tenant="teapots",key="ada",per="day"} 0.15"#,
        r#"agent_spent_dollars{tenant="teapots",key="",per="month"} 0.1"#,
        r#"agent_unspent_dollars{tenant="teapots",key="",per="month"} 1.9"#,
    ] {
        assert!(figures.lines().any(|said| said == line), "{line}\n{figures}");
    }
    assert_eq!(
        figures.matches("agent_spent_dollars{").count(),
        2,
        "one line for an account, however many keys draw on it"
    );
    assert!(figures.ends_with("# EOF\n") && !figures.contains(&ada), "{figures}");
}

#[test]
fn a_limit_that_nobody_counts_is_refused_when_the_server_is_built() {
    let server = || -> ServerBuilder { Server::builder().agent(support([]).build().expect("an agent")) };
    let refused = server().keys(keys(1).0).build().expect_err("nobody counts").to_string();
    assert!(refused.contains("spending"), "{refused}");
    let tenant = serde_json::from_value(json!({"cost_per_month": 1})).expect("limits");
    let (_, key) = Key::generate("ada", "teapots").expect("a key");
    let keys = Keys::new([key]).expect("keys").tenant("teapots", tenant);
    assert!(server().keys(keys).build().is_err());
}
