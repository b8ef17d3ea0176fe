//! Replacement of served agents.

use agent::{Agent, testing::Turn};
use agent_server::Server;
use serde_json::json;

use super::support::{Serving, call, support};

#[tokio::test]
async fn a_run_that_waits_keeps_its_agent_and_one_that_begins_has_the_new_one() {
    let old = support([call("c1", "A-1"), Turn::text("From the old one.")]).build().expect("an agent");
    let server = Server::builder().agent(old).build().expect("a server");
    let app = server.app().clone();
    let serving = Serving::serve(server).await;
    let client = serving.client();
    let waits = client.run(&json!({"input": "Refund A-1.", "session": "s"})).await;
    assert_eq!(waits["status"], "waiting");

    app.replace(support([Turn::text("From the new one.")]).build().expect("an agent")).expect("is served");
    let fresh = client.run(&json!({"input": "Hi.", "session": "t"})).await;
    assert_eq!(fresh["answer"], "From the new one.");
    let answers = json!({"answers": [{"question": waits["questions"][0]["id"], "allow": true}]});
    let id = waits["run"].as_str().expect("an id");
    let told = client.post(&format!("/api/runs/{id}/answers?wait=30"), &answers).await;
    assert_eq!(told.status, 202, "{}", told.text);
    let ended = client.get(&format!("/api/runs/{id}?wait=30")).await.json();
    assert_eq!(ended["answer"], "From the old one.", "{ended}");

    let other = Agent::builder("other", agent::testing::ScriptedModel::new([])).build().expect("an agent");
    assert!(app.replace(other).expect_err("is not served").to_string().contains("keeps its name"));
}
