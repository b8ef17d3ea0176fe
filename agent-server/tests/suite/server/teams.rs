//! Teams over HTTP.

use std::time::Duration;

use agent::{
    Agent, SqliteJournal,
    middleware::Approval,
    team::{Team, TeamBuilder},
    testing::{ScriptedModel, Turn},
};
use agent_server::{Key, Keys, ServedTeam, Server};
use serde_json::{Value, json};

use super::support::{Gated, Serving, refund};

fn lead() -> [Turn; 3] {
    [
        Turn::calls([
            ("1", "spawn_teammate", json!({"role_name": "builder"})),
            ("2", "create_task", json!({"title": "Build it"})),
            ("3", "claim_task", json!({"task_id": "T-001", "assignee_agent_id": "builder-1"})),
        ]),
        Turn::text("The builder is at work."),
        Turn::call("4", "finish_team", json!({"summary": "It is built."})),
    ]
}

fn done() -> [Turn; 2] {
    [
        Turn::calls([
            ("1", "update_task_status", json!({"task_id": "T-001", "status": "completed"})),
            ("2", "message", json!({"to_agent_id": "leader", "content": "T-001 is done."})),
        ]),
        Turn::text("I am done."),
    ]
}

fn team(builder: Agent) -> TeamBuilder {
    let leader = Agent::builder("lead", ScriptedModel::new(lead())).build().expect("builds");
    Team::builder("release").leader(leader).member("builder", builder).describe("builder", "builds")
}

fn builder(turns: impl IntoIterator<Item = Turn>) -> Agent {
    let agent = Agent::builder("builder", ScriptedModel::new(turns)).tool(refund);
    agent.middleware(Approval::new().ask("refund")).build().expect("builds")
}

fn gated() -> (Gated, Agent) {
    let model = Gated::new(done());
    (model.clone(), Agent::builder("builder", model).build().expect("builds"))
}

async fn serving(team: TeamBuilder) -> Serving {
    Serving::new(Server::builder().team(ServedTeam::new(team).description("Makes releases."))).await
}

const SESSION: &str = "/api/teams/release/sessions/v2";

async fn until(client: &super::support::Client, status: &str) -> Value {
    for _ in 0..600 {
        let view = client.get(SESSION).await.json();
        if view["status"] == status {
            return view;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it is never {status}: {}", client.get(SESSION).await.text);
}

/// The data of the frames of this type.
fn frames(text: &str, kind: &str) -> Vec<Value> {
    let blocks = text.split("\n\n").filter(|block| block.lines().any(|line| line == format!("event: {kind}")));
    let data = blocks.filter_map(|block| block.lines().find_map(|line| line.strip_prefix("data: ")));
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

#[tokio::test]
async fn a_team_is_started_and_its_state_and_events_are_read() {
    let serving = serving(team(builder(done()))).await;
    let client = serving.client();
    let all = client.get("/api/teams").await.json();
    assert_eq!(
        all["teams"][0],
        json!({"name": "release", "description": "Makes releases.", "pattern": null, "roles": ["builder"]})
    );
    let started = client.post("/api/teams/release/runs", &json!({"input": "Build.", "session": "v2"})).await;
    assert_eq!(started.status, 202, "{}", started.text);
    let view = until(&client, "finished").await;
    assert_eq!((&view["text"], &view["session"]), (&json!("It is built."), &json!("v2")));
    assert_eq!((&view["tasks"][0]["owner"], &view["tasks"][0]["status"]), (&json!("builder-1"), &json!("completed")));
    assert_eq!(view["members"].as_array().expect("members").len(), 2);

    let events = client.get(&format!("{SESSION}/events")).await.text;
    let changes = frames(&events, "change");
    let kinds: Vec<_> = changes.iter().filter_map(|it| it["change"].as_object()?.keys().next().cloned()).collect();
    assert_eq!(kinds.first().map(String::as_str), Some("started"));
    assert!(kinds.iter().any(|kind| kind == "ended"), "{kinds:?}");
    assert_eq!(frames(&events, "end")[0]["status"], "finished");
    let seqs: Vec<_> = changes.iter().filter_map(|it| it["seq"].as_u64()).collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    let rest = client.get(&format!("{SESSION}/events?after={}", seqs[seqs.len() / 2])).await.text;
    assert!(frames(&rest, "change").len() < changes.len(), "{rest}");

    let open = client.get(&format!("{SESSION}/tasks?status=pending")).await.json();
    assert_eq!(open["tasks"], json!([]));
    let sessions = client.get("/api/teams/release/sessions").await.json();
    assert_eq!(
        (&sessions["sessions"][0]["session"], &sessions["sessions"][0]["is_active"]),
        (&json!("v2"), &json!(false))
    );
    assert_eq!(client.get("/api/teams/nobody/sessions").await.status, 404);
    assert_eq!(client.get("/api/teams/release/sessions/none").await.status, 404);
}

#[tokio::test]
async fn a_stream_has_the_changes_and_the_runs_of_all_members() {
    let serving = serving(team(builder(done()))).await;
    let client = serving.client();
    let body = json!({"input": "Build.", "session": "v2"}).to_string();
    let request = client.request(http::Method::POST, "/api/teams/release/runs");
    let request = request.header("content-type", "application/json").header("accept", "text/event-stream");
    let events = client.answer(request.body(http_body_util::Full::from(body)).expect("a request")).await.text;
    let runs = frames(&events, "run");
    for member in ["leader", "builder-1"] {
        assert!(runs.iter().any(|run| run["member"] == member), "{member}: {events}");
    }
    assert!(!events.contains("local/"), "the store's names of sessions are not shown");
    assert!(frames(&events, "change").iter().any(|it| it["change"]["spawned"]["member"] == "builder-1"), "{events}");
    assert_eq!(frames(&events, "end")[0]["text"], "It is built.");
}

#[tokio::test]
async fn messages_reach_members_and_a_stop_ends_the_run() {
    let (model, agent) = gated();
    let serving = serving(team(agent)).await;
    let client = serving.client();
    client.post("/api/teams/release/runs", &json!({"input": "Build.", "session": "v2"})).await;
    let told = json!({"to": "builder-1", "input": "Be brief."});
    let mut sent = client.post(&format!("{SESSION}/messages"), &told).await;
    for _ in 0..200 {
        if sent.status == 202 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await; // the leader has not spawned it yet
        sent = client.post(&format!("{SESSION}/messages"), &told).await;
    }
    assert_eq!(sent.status, 202, "{}", sent.text);
    let unknown = client.post(&format!("{SESSION}/messages"), &json!({"to": "nobody", "input": "Hi."})).await;
    assert!(unknown.status == 400 && unknown.text.contains("unknown member 'nobody'"), "{}", unknown.text);
    let stopped = client.post(&format!("{SESSION}/stop"), &json!({})).await;
    assert_eq!((stopped.status, &stopped.json()["status"]), (200, &json!("stopped")), "{}", stopped.text);
    let over = client.post(&format!("{SESSION}/resume"), &json!({})).await;
    assert_eq!((over.status, over.code().as_str()), (409, "over"));
    drop(model);
}

#[tokio::test]
async fn a_question_of_a_member_is_answered_over_http() {
    let asks = [Turn::call("r", "refund", json!({"number": "A-17"}))].into_iter().chain(done());
    let serving = serving(team(builder(asks))).await;
    let client = serving.client();
    client.post("/api/teams/release/runs", &json!({"input": "Build.", "session": "v2"})).await;
    let view = until(&client, "waiting").await;
    let asked = &view["questions"][0];
    assert_eq!((&asked["member"], &view["waits"][0]["on"]), (&json!("builder-1"), &json!("user")));
    let wrong = json!({"member": "leader", "question": asked["question"]["id"], "allow": true});
    let refused = client.post(&format!("{SESSION}/answers"), &wrong).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "answer_refused"));
    let answer = json!({"member": "builder-1", "question": asked["question"]["id"], "allow": true});
    let answered = client.post(&format!("{SESSION}/answers"), &answer).await;
    assert_eq!(answered.status, 202, "{}", answered.text);
    assert_eq!(until(&client, "finished").await["text"], "It is built.");
}

#[tokio::test]
async fn a_server_that_stops_suspends_its_teams_and_the_next_one_resumes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = || SqliteJournal::open(folder.path().join("runs.db")).expect("opens");
    let (model, agent) = gated();
    let mut first = Serving::new(Server::builder().team(team(agent)).store(store())).await;
    first.client().post("/api/teams/release/runs", &json!({"input": "Build.", "session": "v2"})).await;
    for _ in 0..200 {
        let view = first.client().get(SESSION).await.json();
        if view["members"].as_array().is_some_and(|members| members.len() == 2) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    first.stop();
    tokio::time::sleep(Duration::from_millis(200)).await; // the pause arrives before the answer
    model.open();
    first.stopped().await;
    // The leader may have been in the middle of its turn.
    let leader =
        ScriptedModel::new([Turn::text("I wait."), Turn::call("4", "finish_team", json!({"summary": "It is built."}))]);
    let leader = Agent::builder("lead", leader).build().expect("builds");
    let builder = Agent::builder("builder", ScriptedModel::new(done())).build().expect("builds");
    let again = Team::builder("release").leader(leader).member("builder", builder);
    let again = again.idle_after(Duration::from_millis(100));
    let second = Serving::new(Server::builder().team(again).store(store())).await;
    assert_eq!(until(&second.client(), "finished").await["text"], "It is built.");
}

#[tokio::test]
async fn tenants_do_not_see_each_others_teams_and_keys_need_their_scopes() {
    let (ada, key_of_ada) = Key::generate("ada", "one").expect("a key");
    let (bob, key_of_bob) = Key::generate("bob", "two").expect("a key");
    let (eve, key_of_eve) = Key::generate("eve", "one").expect("a key");
    let keys = Keys::new([key_of_ada, key_of_bob, key_of_eve.scopes([agent_server::Scope::Read])]).expect("keys");
    let serving = Serving::new(Server::builder().team(team(builder(done()))).keys(keys)).await;
    let body = json!({"input": "Build.", "session": "v2"});
    let (ada, bob, eve) =
        (serving.client().with_key(&ada), serving.client().with_key(&bob), serving.client().with_key(&eve));
    assert_eq!(eve.post("/api/teams/release/runs", &body).await.status, 403);
    assert_eq!(serving.client().get("/api/teams").await.status, 401);
    assert_eq!(ada.post("/api/teams/release/runs", &body).await.status, 202);
    assert_eq!(until(&ada, "finished").await["text"], "It is built.");
    assert_eq!(bob.get(SESSION).await.status, 404);
    assert_eq!(bob.get("/api/teams/release/sessions").await.json()["sessions"], json!([]));
    assert_eq!(eve.get(SESSION).await.status, 200);
}

#[tokio::test]
async fn a_team_is_one_agent_for_other_protocols() {
    let asks = [Turn::call("r", "refund", json!({"number": "A-17"}))].into_iter().chain(done());
    let serving = serving(team(builder(asks))).await;
    let client = serving.client();
    let started = client.post("/api/agents/release/runs", &json!({"input": "Build.", "session": "as-agent"})).await;
    let run = started.json()["run"].as_str().expect("a run").to_owned();
    let view = client.get(&format!("/api/runs/{run}?wait=30")).await.json();
    assert_eq!(view["status"], "waiting", "{view}");
    let question = &view["questions"][0];
    assert_eq!((&question["payload"]["member"], &question["kind"]), (&json!("builder-1"), &json!("approval")));
    let answer = json!({"answers": [{"question": question["id"], "allow": true}]});
    assert_eq!(client.post(&format!("/api/runs/{run}/answers"), &answer).await.status, 202);
    let view = client.get(&format!("/api/runs/{run}?wait=30")).await.json();
    assert_eq!((&view["status"], &view["answer"]), (&json!("finished"), &json!("It is built.")), "{view}");
    let card = client.get("/a2a/release/.well-known/agent-card.json").await.json();
    assert_eq!((&card["name"], &card["description"]), (&json!("release"), &json!("Makes releases.")));
}

#[tokio::test]
async fn the_routes_of_nexau_start_query_and_observe_the_team() {
    let serving = serving(team(builder(done()))).await;
    let client = serving.client();
    let asked = json!({"message": "Build.", "user_id": "ada", "session_id": "v2"});
    let events = client.post("/team/stream", &asked).await.text;
    let envelopes: Vec<Value> = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let of = |member: &str, kind: &str| {
        envelopes.iter().any(|it| it["agent_id"] == member && it["event"]["type"] == kind && it["team_id"] == "ada/v2")
    };
    for member in ["leader", "builder-1"] {
        assert!(of(member, "RUN_STARTED") && of(member, "RUN_FINISHED"), "{member}: {events}");
    }
    assert!(envelopes.iter().any(|it| it["role_name"] == "builder"), "{events}");
    assert_eq!(envelopes.last().expect("an end")["event"]["type"], "TEAM_FINISHED");
    let which = "user_id=ada&session_id=v2";
    let tasks = client.get(&format!("/team/tasks?status=completed&{which}")).await.json();
    assert_eq!(
        (&tasks["tasks"][0]["task_id"], &tasks["tasks"][0]["assignee_agent_id"]),
        (&json!("T-001"), &json!("builder-1"))
    );
    let members = client.get(&format!("/team/teammates?{which}")).await.json();
    assert_eq!(members["teammates"], json!([{"agent_id": "builder-1", "role_name": "builder", "status": "idle"}]));
    let status = client.get(&format!("/team/status?{which}")).await.json();
    assert_eq!((&status["is_running"], &status["reason"]), (&json!(false), &json!("finished")));
    let stopped = client.post("/team/stop", &json!({"user_id": "ada", "session_id": "v2"})).await.json();
    assert_eq!(stopped["status"], "not_running");
    assert_eq!(client.post("/team/query", &json!({"user_id": "ada"})).await.status, 400);
}

#[tokio::test]
async fn a_query_of_nexau_returns_the_result() {
    let serving = serving(team(builder(done()))).await;
    let answer =
        serving.client().post("/team/query", &json!({"messages": [{"role": "user", "content": "Build."}]})).await;
    let answer = answer.json();
    assert_eq!((&answer["status"], &answer["response"]), (&json!("finished"), &json!("It is built.")), "{answer}");
}

#[tokio::test]
async fn each_member_is_a_sub_agent_of_one_run_for_front_ends() {
    let serving = serving(team(builder(done()))).await;
    let asked = json!({
        "threadId": "v2", "runId": "r1", "messages": [{"id": "1", "role": "user", "content": "Build."}],
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    });
    let events = serving.client().post("/ag-ui/teams/release", &asked).await.text;
    let events: Vec<Value> = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    assert_eq!(events[0]["type"], "RUN_STARTED");
    let last = events.last().expect("an end");
    assert_eq!((&last["type"], &last["result"]), (&json!("RUN_FINISHED"), &json!("It is built.")), "{events:?}");
    let told = events.iter().map(Value::to_string).collect::<String>();
    assert!(told.contains("leader") && told.contains("builder-1"), "{told}");
    assert!(events.iter().any(|it| it["type"] == "TEXT_MESSAGE_CONTENT"), "{told}");
}
