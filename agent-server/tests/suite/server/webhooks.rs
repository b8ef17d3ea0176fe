//! Webhooks of runs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent::{
    Agent, SqliteJournal,
    journal::{Journal, MemoryJournal},
    model::Backoff,
    store::MemoryQueue,
    testing::Turn,
};
use agent_server::{Key, Keys, Server, ServerBuilder, Webhook, Webhooks};
use axum::{
    Router,
    extract::{Request, State},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use ring::hmac;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{
    dispatch::{dies_with_one, give_up},
    support::{Gated, Serving, call, support},
};

/// Received request.
#[derive(Debug)]
pub(crate) struct Got {
    path: String,
    headers: HeaderMap,
    body: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("letters")
    }

    /// True if the request is signed with this secret, verified like a receiver does.
    fn is_signed(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let tag = self.header("webhook-signature").strip_prefix("v1,").expect("version 1");
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let tag = STANDARD.decode(tag).expect("base64");
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes(), &tag).is_ok()
    }
}

/// Receiver of webhooks, which responds with these statuses before it accepts one.
pub(crate) struct Receiver {
    pub(crate) url: String,
    got: UnboundedReceiver<Got>,
}

type Mood = (UnboundedSender<Got>, Arc<Mutex<Vec<u16>>>);

impl Receiver {
    pub(crate) async fn new(mut statuses: Vec<u16>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, got) = mpsc::unbounded_channel();
        statuses.reverse();
        let router = Router::new().fallback(take).with_state((sender, Arc::new(Mutex::new(statuses))));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, got }
    }

    pub(crate) async fn next(&mut self) -> Got {
        let got = tokio::time::timeout(Duration::from_secs(30), self.got.recv()).await;
        got.expect("in time").expect("something")
    }
}

async fn take(State((sender, statuses)): State<Mood>, request: Request) -> StatusCode {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await.expect("a body").to_bytes().to_vec()).expect("a text");
    let _ = sender.send(Got { path: head.uri.path().to_owned(), headers: head.headers, body });
    let status = statuses.lock().expect("no panic").pop().unwrap_or(204);
    StatusCode::from_u16(status).expect("a status")
}

pub(crate) fn webhooks() -> Webhooks {
    let soon = Backoff::new().retries(5).initial_delay(Duration::from_millis(1)).jitter(0.0);
    Webhooks::new("a secret of twenty bytes").allow("127.0.0.1").backoff(soon)
}

fn served(turns: impl IntoIterator<Item = Turn>, webhooks: Webhooks) -> ServerBuilder {
    Server::builder().agent(support(turns).build().expect("an agent")).webhooks(webhooks)
}

#[tokio::test]
async fn a_program_is_told_of_the_question_and_of_the_end_signed() {
    let mut receiver = Receiver::new(Vec::new()).await;
    let serving = Serving::new(served([call("c1", "A-1"), Turn::text("Done.")], webhooks())).await;
    let client = serving.client();
    let secret = client.get("/api/webhooks").await.json()["secret"].as_str().expect("a secret").to_owned();
    let run =
        client.start(&json!({"input": "Refund A-1.", "webhook": format!("{}/there?key=hush", receiver.url)})).await;
    let asked = receiver.next().await;
    assert!(asked.is_signed(&secret), "{asked:?}");
    let told = asked.json();
    assert_eq!(
        (&told["type"], &told["data"]["run"], asked.path.as_str()),
        (&json!("run.waiting"), &run["run"], "/there")
    );
    assert_eq!(told["data"]["questions"][0]["id"], "c1/approval");
    let id = run["run"].as_str().expect("an id");
    client
        .post(&format!("/api/runs/{id}/answers"), &json!({"answers": [{"question": "c1/approval", "allow": true}]}))
        .await;
    let ended = receiver.next().await;
    assert_eq!((&ended.json()["type"], &ended.json()["data"]["answer"]), (&json!("run.finished"), &json!("Done.")));
    assert_ne!(asked.header("webhook-id"), ended.header("webhook-id"));
    // Readers of the session must see neither the URL nor its secrets.
    let session = run["session"].as_str().expect("a session");
    let kept = client.get(&format!("/api/sessions/{session}/entries")).await.text;
    assert!(!kept.contains("agent-server/webhooks/") && !kept.contains("hush"), "{kept}");
}

#[tokio::test]
async fn what_is_not_taken_comes_again_under_its_id_and_what_is_gone_does_not() {
    let mut receiver = Receiver::new(vec![503, 307, 404]).await;
    let journal = MemoryJournal::default();
    let server = served([Turn::text("Done."), Turn::text("Done.")], webhooks()).store(journal.clone());
    let serving = Serving::new(server).await;
    serving.client().start(&json!({"input": "Hi.", "webhook": receiver.url})).await;
    let first = receiver.next().await;
    for _ in 0..3 {
        assert_eq!(receiver.next().await.header("webhook-id"), first.header("webhook-id"));
    }
    let mut gone = Receiver::new(vec![410, 503]).await;
    let run = serving.client().start(&json!({"input": "Hi.", "webhook": gone.url})).await;
    gone.next().await;
    // The webhook is deleted once nothing is left to deliver.
    let session = format!("local/{}", run["session"].as_str().expect("a session"));
    let notes = async || {
        let index = journal.whole_index(&session).await.expect("reads");
        index.look(|index| index.globals().keys().any(|key| key.starts_with("agent-server/webhooks/")))
    };
    while notes().await {
        tokio::task::yield_now().await;
    }
    assert!(gone.got.try_recv().is_err() && receiver.got.try_recv().is_err());
}

#[tokio::test]
async fn addresses_that_may_not_be_reached_are_refused_and_so_is_every_one_without_a_secret() {
    let serving = Serving::new(served([], webhooks())).await;
    for url in ["http://169.254.169.254/", "http://10.0.0.1/", "http://[::1]/", "ftp://a.example/", "there"] {
        let answer = serving.client().post("/api/agents/support/runs", &json!({"input": "Hi.", "webhook": url})).await;
        assert_eq!(answer.status, 400, "{url}: {}", answer.text);
    }
    let without = Serving::of(support([])).await;
    let body = json!({"input": "Hi.", "webhook": {"url": "https://a.example", "events": ["run.failed"]}});
    let answer = without.client().post("/api/agents/support/runs", &body).await;
    assert!(answer.status == 400 && answer.text.contains("secret"), "{}", answer.text);
    assert_eq!(without.client().get("/api/webhooks").await.status, 404);
    assert!(served([], Webhooks::new("short")).build().is_err());
}

#[tokio::test]
async fn the_operator_and_the_key_name_who_is_told_of_every_run() {
    let (mut of_server, mut of_key) = (Receiver::new(Vec::new()).await, Receiver::new(Vec::new()).await);
    let (secret, mut key) = Key::generate("ada", "teapots").expect("a key");
    key.webhook = Some(Webhook::new(&of_key.url).events([agent_server::HookEvent::Failed]));
    let turns = [Turn::text("Done."), Turn::error(|| agent::Error::new(agent::ErrorKind::InvalidRequest, "no"))];
    let builder = served(turns, webhooks().url(&of_server.url)).keys(Keys::new([key]).expect("keys"));
    let serving = Serving::new(builder).await;
    let client = serving.client().with_key(&secret);
    client.run(&json!({"input": "Hi."})).await;
    assert_eq!(of_server.next().await.json()["type"], "run.finished");
    client.run(&json!({"input": "Hi."})).await;
    assert_eq!(of_server.next().await.json()["type"], "run.failed");
    assert_eq!(of_key.next().await.json()["type"], "run.failed", "it wants nothing else");
}

#[tokio::test]
async fn what_a_server_did_not_tell_the_next_one_does() {
    let mut receiver = Receiver::new(vec![503]).await;
    let dir = tempfile::tempdir().expect("a directory");
    let serve = async |webhooks: Webhooks| {
        let model = Gated::new([Turn::text("Done.")]);
        model.open();
        let agent = Agent::builder("support", model).build().expect("an agent");
        let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
        Serving::new(Server::builder().agent(agent).store(journal).webhooks(webhooks)).await
    };
    let late = Backoff::new().initial_delay(Duration::from_secs(3000)).max_delay(Duration::from_secs(3000)).jitter(0.0);
    let one = serve(webhooks().backoff(late)).await;
    one.client().run(&json!({"input": "Hi.", "webhook": receiver.url})).await;
    let first = receiver.next().await;
    one.stopped().await;
    let _two = serve(webhooks()).await;
    assert_eq!(receiver.next().await.header("webhook-id"), first.header("webhook-id"));
}

#[tokio::test]
async fn a_program_is_told_of_a_run_elsewhere_that_was_given_up() {
    let mut receiver = Receiver::new(Vec::new()).await;
    let (queue, journal) = (Arc::new(MemoryQueue::default()), MemoryJournal::default());
    let front = served([], webhooks()).store(journal.clone()).queue(queue.clone());
    let serving = Serving::new(front).await;
    let run = serving.client().start(&json!({"input": "Hi.", "webhook": receiver.url})).await;
    let claimed = dies_with_one(&*queue, &journal).await;
    give_up(&*queue, &claimed).await;
    let told = receiver.next().await.json();
    assert_eq!((&told["type"], &told["data"]["run"]), (&json!("run.failed"), &run["run"]));
    assert_eq!(told["data"]["error"], "it was tried 5 times");
}

#[tokio::test]
async fn a_task_is_told_to_those_who_were_named_for_it() {
    let mut receiver = Receiver::new(Vec::new()).await;
    let serving = Serving::new(served([call("c1", "A-1"), Turn::text("Done.")], webhooks())).await;
    let client = serving.client();
    let rpc = async |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        client.post("/a2a/support", &request).await.json()
    };
    let card = client.get("/.well-known/agent-card.json").await.json();
    assert_eq!(card["capabilities"]["pushNotifications"], true);
    let message = json!({"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "Refund A-1."}]});
    let named =
        json!({"url": receiver.url, "token": "t-1", "authentication": {"schemes": ["Bearer"], "credentials": "hush"}});
    let task =
        rpc("message/send", json!({"message": message, "configuration": {"pushNotificationConfig": named}})).await;
    let id = task["result"]["id"].clone();
    let got = receiver.next().await;
    assert_eq!((got.header("x-a2a-notification-token"), got.header("authorization")), ("t-1", "Bearer hush"));
    assert_eq!((&got.json()["id"], &got.json()["status"]["state"]), (&id, &json!("input-required")));

    let second = json!({"id": "two", "url": format!("{}/two", receiver.url)});
    let set = rpc("tasks/pushNotificationConfig/set", json!({"taskId": id, "pushNotificationConfig": second})).await;
    assert_eq!(set["result"]["pushNotificationConfig"], second, "{set}");
    assert_eq!(receiver.next().await.path, "/two", "it is told how the task stands");
    let get = rpc("tasks/pushNotificationConfig/get", json!({"id": id, "pushNotificationConfigId": "two"})).await;
    assert_eq!(get["result"], set["result"]);
    let list = rpc("tasks/pushNotificationConfig/list", json!({"id": id})).await;
    assert_eq!(list["result"].as_array().map(Vec::len), Some(2), "{list}");
    rpc("tasks/pushNotificationConfig/delete", json!({"id": id, "pushNotificationConfigId": "two"})).await;
    let list = rpc("tasks/pushNotificationConfig/list", json!({"id": id})).await;
    assert_eq!(list["result"].as_array().map(Vec::len), Some(1), "{list}");

    let mut yes = message.clone();
    (yes["messageId"], yes["taskId"], yes["parts"][0]["text"]) = ("m2".into(), id.clone(), "yes".into());
    rpc("message/send", json!({"message": yes})).await;
    let ended = receiver.next().await;
    assert_eq!((ended.path.as_str(), &ended.json()["status"]["state"]), ("/", &json!("completed")));
}

#[tokio::test]
async fn notifications_of_a_task_of_version_1_are_events_of_its_stream() {
    let mut receiver = Receiver::new(Vec::new()).await;
    let serving = Serving::new(served([call("c1", "A-1"), Turn::text("Done.")], webhooks())).await;
    let client = serving.client();
    let rpc = async |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        client.post("/a2a/support", &request).await.json()
    };
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "Refund A-1."}]});
    let named =
        json!({"url": receiver.url, "token": "t-1", "authentication": {"scheme": "Bearer", "credentials": "hush"}});
    let configuration = json!({"taskPushNotificationConfig": named});
    let sent = rpc("SendMessage", json!({"message": message, "configuration": configuration})).await;
    let id = sent["result"]["task"]["id"].clone();
    let got = receiver.next().await;
    assert_eq!((got.header("x-a2a-notification-token"), got.header("authorization")), ("t-1", "Bearer hush"));
    let state = json!("TASK_STATE_INPUT_REQUIRED");
    assert_eq!((&got.json()["task"]["id"], &got.json()["task"]["status"]["state"]), (&id, &state));

    let second = json!({"taskId": id, "url": format!("{}/two", receiver.url)});
    let created = rpc("CreateTaskPushNotificationConfig", second).await["result"].clone();
    assert!(created["id"].as_str().is_some_and(|id| !id.is_empty()) && created["taskId"] == id, "{created}");
    assert_eq!(receiver.next().await.path, "/two");
    let one = json!({"taskId": id, "id": created["id"]});
    assert_eq!(rpc("GetTaskPushNotificationConfig", one.clone()).await["result"], created);
    let list = rpc("ListTaskPushNotificationConfigs", json!({"taskId": id})).await["result"].clone();
    assert_eq!((list["configs"].as_array().map(Vec::len), &list["nextPageToken"]), (Some(2), &json!("")));
    assert_eq!(list["configs"][0]["authentication"], json!({"scheme": "Bearer", "credentials": "hush"}), "{list}");
    assert_eq!(rpc("DeleteTaskPushNotificationConfig", one.clone()).await["result"], json!({}));
    assert_eq!(rpc("GetTaskPushNotificationConfig", one).await["error"]["code"], -32001);
}
