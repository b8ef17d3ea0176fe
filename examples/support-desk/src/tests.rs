use std::path::Path;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, Response, StatusCode, header},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

/// The application over a journal file, and the orders of its agent.
fn app(journal: &Path) -> (Router, Orders) {
    let orders = Orders::sample();
    let agent = desk::build(Script, orders.clone()).expect("builds");
    let server = server(agent, SqliteJournal::open(journal).expect("opens")).expect("a server");
    (server.router().merge(page::router()), orders)
}

async fn send(app: &Router, path: &str, body: Option<Value>) -> Response<Body> {
    let request = Request::builder().uri(path).header(header::HOST, "localhost");
    let request = match body {
        Some(body) => {
            request.method("POST").header(header::CONTENT_TYPE, "application/json").body(body.to_string().into())
        }
        None => request.body(Body::empty()),
    };
    app.clone().oneshot(request.expect("a request")).await.expect("an answer")
}

/// Sends a request and returns the JSON of a successful response.
async fn json(app: &Router, path: &str, body: Option<Value>) -> Value {
    let response = send(app, path, body).await;
    let status = response.status();
    let bytes = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
    assert!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&bytes));
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Sends a customer's message, and waits until the run ends or waits.
async fn say(app: &Router, text: &str) -> Value {
    let run = json(app, "/api/agents/support/runs", Some(json!({"input": text, "session": "ada"}))).await;
    rest(app, &run).await
}

async fn rest(app: &Router, run: &Value) -> Value {
    json(app, &format!("/api/runs/{}?wait=30", run["run"].as_str().expect("an id")), None).await
}

/// Answers the only open question, and waits for the run.
async fn decide(app: &Router, decision: Value) -> Value {
    let open = json(app, "/api/questions?agent=support", None).await;
    let waiting = &open["questions"][0];
    let mut answer = json!({"question": waiting["question"]["id"], "digest": waiting["question"]["digest"]});
    answer.as_object_mut().expect("an object").extend(decision.as_object().expect("an object").clone());
    let path = format!("/api/runs/{}/answers", waiting["run"].as_str().expect("an id"));
    let run = json(app, &path, Some(json!({"answers": [answer]}))).await;
    rest(app, &run).await
}

fn journal() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("support.db");
    (folder, path)
}

#[tokio::test]
async fn a_question_about_an_order_is_answered_without_a_person() {
    let (_folder, path) = journal();
    let (app, _) = app(&path);
    let run = say(&app, "Where is A-18?").await;
    assert_eq!(
        (&run["status"], &run["answer"]),
        (&json!("finished"), &json!("A-18: four cups, on its way, 50.00 francs"))
    );
}

#[tokio::test]
async fn a_refund_waits_until_a_person_approves_it() {
    let (_folder, path) = journal();
    let (app, orders) = app(&path);

    let run = say(&app, "A-17 came broken.").await;
    assert_eq!(run["status"], "waiting");
    assert!(!orders.describe("A-17").expect("it exists").contains("refunded"));

    let run = decide(&app, json!({"allow": true})).await;
    assert_eq!(run["status"], "finished");
    assert!(run["answer"].as_str().expect("an answer").contains("A-17 is refunded: 39.00 francs"), "{run}");
    assert!(orders.describe("A-17").expect("it exists").ends_with("refunded"));
}

#[tokio::test]
async fn a_rejected_refund_does_not_happen_and_the_customer_learns_the_reason() {
    let (_folder, path) = journal();
    let (app, orders) = app(&path);
    say(&app, "A-17 came broken.").await;

    let run = decide(&app, json!({"allow": false, "reason": "The photo is missing."})).await;

    assert!(run["answer"].as_str().expect("an answer").contains("The photo is missing."), "{run}");
    assert!(!orders.describe("A-17").expect("it exists").contains("refunded"));
}

#[tokio::test]
async fn an_open_approval_survives_a_restart() {
    let (_folder, path) = journal();
    let (before, _) = app(&path);
    say(&before, "A-17 came broken.").await;
    drop(before);

    let (after, orders) = app(&path);
    let run = decide(&after, json!({"allow": true})).await;

    assert_eq!(run["status"], "finished", "{run}");
    assert!(orders.describe("A-17").expect("it exists").ends_with("refunded"));
}

#[tokio::test]
async fn the_page_and_its_files_are_served_with_a_policy_against_foreign_scripts() {
    let (_folder, path) = journal();
    let (app, _) = app(&path);
    for path in ["/", "/page.css", "/page.js"] {
        let response = send(&app, path, None).await;
        assert_eq!(response.status(), StatusCode::OK);
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("a text");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{path}: {policy}");
    }
}
