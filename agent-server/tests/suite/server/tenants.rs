//! Isolation of tenants, and scopes of keys.

use agent::{Agent, journal::MemoryJournal, middleware::Approval, testing::Turn};
use agent_server::{Caller, Key, Keys, Scope, Server};
use axum::{extract::Request, middleware::Next};
use http::Method;
use serde_json::json;

use super::support::{Client, Gated, Serving, call, refund, support};

/// Returns a server with keys of two tenants, and a read-only key of the first.
async fn two_tenants(turns: Vec<Turn>) -> (Serving, Client, Client, Client) {
    let (ada, of_ada) = Key::generate("ada", "teapots").expect("a key");
    let (bob, of_bob) = Key::generate("bob", "kettles").expect("a key");
    let (eye, of_eye) = Key::generate("eye", "teapots").expect("a key");
    let keys = Keys::new([of_ada, of_bob, of_eye.scopes([Scope::Read])]).expect("keys");
    let server = Server::builder().agent(support(turns).build().expect("an agent")).keys(keys);
    let serving = Serving::new(server).await;
    let client = serving.client();
    let (ada, bob, eye) = (client.with_key(&ada), client.with_key(&bob), client.with_key(&eye));
    (serving, ada, bob, eye)
}

#[tokio::test]
async fn nothing_of_one_tenant_is_seen_or_moved_by_another() {
    let (_serving, ada, bob, _) =
        two_tenants(vec![call("c1", "A-1"), Turn::text("Hello Bob."), Turn::text("Done.")]).await;
    let run = ada.run(&json!({"input": "Refund A-1.", "session": "garden"})).await;
    assert_eq!(run["status"], "waiting");
    let id = run["run"].as_str().expect("an id");

    for path in [
        format!("/api/runs/{id}"),
        format!("/api/runs/{id}?session=garden"),
        format!("/api/runs/{id}/events"),
        "/api/sessions/garden".into(),
        "/api/sessions/garden/entries".into(),
        "/api/sessions/garden/export".into(),
        "/api/sessions/teapots%2Fgarden".into(),
        "/api/sessions/..%2Fteapots%2Fgarden".into(),
        format!("/api/runs/{id}?session=teapots%2Fgarden"),
    ] {
        let answer = bob.get(&path).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"), "{path}: {}", answer.text);
    }
    for (path, body) in [
        (format!("/api/runs/{id}/cancel"), json!({})),
        (format!("/api/runs/{id}/pause"), json!({})),
        (format!("/api/runs/{id}/resume"), json!({})),
        (format!("/api/runs/{id}/steer"), json!({"input": "Stop."})),
        (format!("/api/runs/{id}/answers"), json!({"answers": [{"question": "c1/approval", "allow": true}]})),
        ("/api/sessions/garden/fork".into(), json!({"step": 0, "into": "mine"})),
        ("/api/sessions/garden/undo".into(), json!({"run": id})),
        ("/api/sessions/garden/replay".into(), json!({})),
    ] {
        assert_eq!(bob.post(&path, &body).await.status, 404, "{path}");
    }
    assert_eq!(bob.delete("/api/sessions/garden").await.status, 404);
    for path in ["/api/sessions", "/api/runs", "/api/questions"] {
        let listed = bob.get(path).await.text;
        assert!(!listed.contains("garden") && !listed.contains("A-1"), "{path}: {listed}");
    }

    let mine = bob.run(&json!({"input": "Hi.", "session": "garden"})).await;
    assert_eq!(mine["answer"], "Hello Bob.", "the same name is another session");
    assert_eq!(ada.get("/api/questions").await.json()["questions"][0]["run"], run["run"], "it waits as before");
    ada.post(&format!("/api/runs/{id}/answers"), &json!({"answers": [{"question": "c1/approval", "allow": true}]}))
        .await;
    assert_eq!(ada.rest(&run).await["answer"], "Done.");
}

#[tokio::test]
async fn a_key_is_needed_and_does_what_its_scopes_say() {
    let (serving, ada, _, eye) = two_tenants(vec![Turn::text("Hello.")]).await;
    for client in [serving.client(), serving.client().with_key("agent_key_none"), serving.client().with_key("")] {
        let answer = client.get("/api/agents").await;
        assert_eq!((answer.status, answer.headers["www-authenticate"].to_str().ok()), (401, Some("Bearer")));
    }
    let run = ada.run(&json!({"input": "Hi.", "session": "garden"})).await;
    for path in ["/api/sessions/garden/entries", "/api/sessions/garden/export"] {
        let told = ada.get(path).await.text;
        assert!(told.contains("\"user\":\"ada\"") && !told.contains("teapots"), "{path}: {told}");
    }
    let id = run["run"].as_str().expect("an id");
    assert_eq!(eye.get(&format!("/api/runs/{id}")).await.json()["answer"], "Hello.");
    assert_eq!(eye.post("/api/agents/support/runs", &json!({"input": "Hi."})).await.status, 403);
    assert_eq!(eye.post(&format!("/api/runs/{id}/cancel"), &json!({})).await.status, 403);
    assert_eq!(eye.delete("/api/sessions/garden").await.status, 403);
    assert_eq!(ada.get("/metrics").await.status, 403, "the figures are of all tenants");
}

#[tokio::test]
async fn cards_are_read_by_callers_and_by_everybody_where_that_is_wanted() {
    for (public, status) in [(false, 401), (true, 200)] {
        let (secret, key) = Key::generate("ada", "teapots").expect("a key");
        let server = Server::builder().agent(support([]).build().expect("an agent")).public_cards(public);
        let serving = Serving::new(server.keys(Keys::new([key]).expect("keys"))).await;
        for path in ["/.well-known/agent-card.json", "/a2a/support/.well-known/agent-card.json"] {
            assert_eq!(serving.client().get(path).await.status, status, "{path}");
            assert_eq!(serving.client().with_key(&secret).get(path).await.json()["name"], "support");
        }
        assert_eq!(serving.client().get("/api/agents").await.status, 401);
    }
}

#[tokio::test]
async fn a_page_keeps_its_key_in_a_cookie_that_no_script_reads() {
    let (secret, key) = Key::generate("ada", "teapots").expect("a key");
    let keys = Keys::new([key]).expect("keys");
    let server = Server::builder().agent(support([]).build().expect("an agent")).keys(keys);
    let serving = Serving::new(server).await;
    let client = serving.client();
    assert_eq!(client.post("/api/login", &json!({"key": "wrong"})).await.status, 401);
    let answer = client.post("/api/login", &json!({"key": secret})).await;
    let cookie = answer.headers["set-cookie"].to_str().expect("a cookie").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("Secure"), "a page without encryption could not send it: {cookie}");
    let mut encrypted = client.json(Method::POST, "/api/login", &json!({"key": secret}));
    encrypted.headers_mut().insert("x-forwarded-proto", "https".parse().expect("a value"));
    let encrypted = client.answer(encrypted).await;
    assert!(encrypted.headers["set-cookie"].to_str().is_ok_and(|cookie| cookie.contains("; Secure")));
    let pair = cookie.split(';').next().expect("a pair");
    let request = client.request(Method::GET, "/api/agents").header("cookie", pair);
    assert_eq!(client.answer(request.body(http_body_util::Full::default()).expect("a request")).await.status, 200);
}

#[tokio::test]
async fn a_layer_of_the_teams_own_says_who_asks() {
    let keys = Keys::new([Key::of("a key that nobody has", "x", "y")]).expect("keys");
    let server = Server::builder().agent(support([Turn::text("Hello.")]).build().expect("an agent")).keys(keys);
    let server = server.build().expect("a server");
    let who = async |mut request: Request, next: Next| {
        let tenant = request.headers().get("x-team").and_then(|team| team.to_str().ok()).map(str::to_owned);
        if let Some(tenant) = tenant {
            request.extensions_mut().insert(Caller::new(tenant, "somebody"));
        }
        next.run(request).await
    };
    let router = server.router().layer(axum::middleware::from_fn(who));
    let ask = async |team: Option<&str>| {
        let mut request = http::Request::get("/api/agents").header("host", "127.0.0.1");
        if let Some(team) = team {
            request = request.header("x-team", team);
        }
        let request = request.body(axum::body::Body::empty()).expect("a request");
        tower::ServiceExt::oneshot(router.clone(), request).await.expect("an answer").status().as_u16()
    };
    assert_eq!((ask(Some("teapots")).await, ask(None).await), (200, 401));
}

#[tokio::test]
async fn runs_of_two_tenants_with_one_id_are_two_runs() {
    let journal = MemoryJournal::default();
    let asks = support([call("c1", "A-1"), call("c1", "A-1")]).store(journal.clone()).build().expect("an agent");
    for session in ["teapots/s", "kettles/s"] {
        let request = agent::RunRequest::user("Refund A-1.").session(session).run_id("order-17");
        let end = asks.start(request).await.expect("it runs");
        assert!(matches!(end, agent::RunEnd::Interrupted(_)), "{end:?}");
    }
    let model = Gated::new(["One.", "Two."].map(Turn::text));
    let agent = Agent::builder("support", model.clone()).tool(refund).middleware(Approval::new().ask("refund"));
    let keys: Vec<_> = ["teapots", "kettles"].map(|tenant| Key::generate("k", tenant).expect("a key")).into();
    let rows = keys.iter().map(|(_, key)| key.clone());
    let server = Server::builder().agent(agent.build().expect("an agent")).store(journal);
    let serving = Serving::new(server.keys(Keys::new(rows).expect("keys"))).await;
    let answers = json!({"answers": [{"question": "c1/approval", "allow": true}]});
    let clients: Vec<_> = keys.iter().map(|(secret, _)| serving.client().with_key(secret)).collect();
    for client in &clients {
        let answered = client.post("/api/runs/order-17/answers?session=s", &answers).await;
        assert_eq!(answered.status, 202, "{}", answered.text);
    }
    model.open();
    model.open();
    let mut told = Vec::new();
    for client in &clients {
        let run = client.get("/api/runs/order-17?session=s&wait=30").await.json();
        assert_eq!(run["status"], "finished", "{run}");
        told.push(run["answer"].to_string());
    }
    told.sort();
    assert_eq!(told, ["\"One.\"", "\"Two.\""]);
}
