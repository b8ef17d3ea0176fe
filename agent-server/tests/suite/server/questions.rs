//! Open questions of runs, and their answers.

use agent::{
    Agent, SqliteJournal,
    testing::{ScriptedModel, Turn},
};
use agent_server::Server;
use serde_json::{Value, json};

use super::support::{Client, Serving, call, refund, support};

async fn answer(client: &Client, run: &Value, answers: Value) -> super::support::Answer {
    let id = run["run"].as_str().expect("an id");
    client.post(&format!("/api/runs/{id}/answers"), &json!({"answers": answers})).await
}

#[tokio::test]
async fn a_question_is_listed_allowed_and_the_same_answer_is_taken_once() {
    let serving = Serving::of(support([call("c1", "A-1"), Turn::text("Done.")])).await;
    let client = serving.client();
    let run = client.run(&json!({"input": "Refund A-1.", "session": "garden"})).await;
    assert_eq!((&run["status"], &run["questions"][0]["kind"]), (&json!("waiting"), &json!("approval")));
    let waiting = client.get("/api/questions").await.json();
    let one = &waiting["questions"][0];
    assert_eq!((&one["run"], &one["session"]), (&run["run"], &json!("garden")));
    assert_eq!(one["question"]["payload"]["arguments"]["number"], "A-1");

    let digest = one["question"]["digest"].clone();
    let allow = json!([{"question": "c1/approval", "digest": digest, "allow": true}]);
    assert_eq!(answer(&client, &run, allow.clone()).await.status, 202);
    let ended = client.rest(&run).await;
    assert_eq!((&ended["status"], &ended["answer"]), (&json!("finished"), &json!("Done.")));
    assert_eq!(answer(&client, &run, allow).await.status, 200, "it was taken before");
    let other = answer(&client, &run, json!([{"question": "c1/approval", "allow": false}])).await;
    assert_eq!((other.status, other.code().as_str()), (409, "answer_refused"), "it was answered otherwise");
    assert_eq!(client.get("/api/questions").await.json()["questions"], json!([]));
}

#[tokio::test]
async fn of_two_answers_that_come_together_one_is_taken_and_the_other_is_told_so() {
    let serving = Serving::of(support([call("c1", "A-1"), Turn::text("Done.")])).await;
    let client = serving.client();
    let run = client.run(&json!({"input": "Refund A-1."})).await;
    let say = async |allow: bool| answer(&client, &run, json!([{"question": "c1/approval", "allow": allow}])).await;
    let (yes, no) = tokio::join!(say(true), say(false));
    let mut statuses = [yes.status, no.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 409], "{} {}", yes.text, no.text);
    assert_eq!(client.rest(&run).await["status"], "finished");
}

#[tokio::test]
async fn a_call_is_denied_with_a_reason_or_runs_with_other_arguments() {
    let model = ScriptedModel::new([call("c1", "A-1"), call("c2", "A-2"), Turn::text("Done.")]);
    let agent = Agent::builder("support", model.clone()).tool(refund);
    let serving = Serving::of(agent.middleware(agent::middleware::Approval::new().ask("refund"))).await;
    let client = serving.client();
    let run = client.run(&json!({"input": "Refund both."})).await;
    let denied = json!([{"question": "c1/approval", "allow": false, "reason": "not today"}]);
    assert_eq!(answer(&client, &run, denied).await.status, 202);
    let run = client.rest(&run).await;
    assert_eq!(run["questions"][0]["id"], "c2/approval", "{run}");
    let edited = json!([{"question": "c2/approval", "arguments": {"number": "B-7"}}]);
    assert_eq!(answer(&client, &run, edited).await.status, 202);
    assert_eq!(client.rest(&run).await["status"], "finished");
    let results = model.requests()[2].results();
    assert!(results[0].1.contains("not today") && results[1].1.contains("B-7 is refunded"), "{results:?}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_is_refused_and_the_run_waits_as_before() {
    let serving = Serving::of(support([call("c1", "A-1"), Turn::text("Done.")])).await;
    let client = serving.client();
    let run = client.run(&json!({"input": "Refund A-1."})).await;
    for (answers, status, code) in [
        (json!([]), 400, "invalid_request"),
        (json!([{"question": "c1/approval"}]), 400, "invalid_request"),
        (json!([{"question": "c1/approval", "allow": true, "value": 1}]), 400, "invalid_request"),
        (json!([{"question": "c1/approval", "allow": true, "reason": "why not"}]), 400, "invalid_request"),
        (json!([{"question": "other", "allow": true}]), 409, "answer_refused"),
        (json!([{"question": "c1/approval", "digest": "forged", "allow": true}]), 409, "answer_refused"),
        (json!([{"question": "c1/approval", "allow": true}, {"question": "x", "allow": true}]), 409, "answer_refused"),
    ] {
        let refused = answer(&client, &run, answers.clone()).await;
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{answers}: {}", refused.text);
    }
    assert_eq!(client.rest(&run).await["status"], "waiting");
}

#[tokio::test]
async fn a_question_is_answered_at_another_process_that_has_the_store() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let serve = |turns: Vec<Turn>| {
        let agent = support(turns).build().expect("an agent");
        Serving::new(Server::builder().agent(agent).store(journal.clone()))
    };
    let one = serve(vec![call("c1", "A-1")]).await;
    let run = one.client().run(&json!({"input": "Refund A-1.", "session": "garden"})).await;
    assert_eq!(run["status"], "waiting");
    one.stopped().await;

    let other = serve(vec![Turn::text("Done.")]).await;
    let client = other.client();
    assert_eq!(client.get("/api/questions").await.json()["questions"][0]["run"], run["run"]);
    assert_eq!(client.rest(&run).await["questions"][0]["id"], "c1/approval");
    assert_eq!(answer(&client, &run, json!([{"question": "c1/approval", "allow": true}])).await.status, 202);
    assert_eq!(client.rest(&run).await["answer"], "Done.");
}
