//! Agents with an output type.

use agent_core::{
    ErrorKind, MemoryJournal, RunRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_tools::Structured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct City {
    name: String,
    people: u64,
}

fn bern() -> City {
    City { name: "Bern".into(), people: 140_000 }
}

#[tokio::test]
async fn a_run_returns_a_value_of_the_type() {
    let model = ScriptedModel::new([Turn::text(format!("Here: {}", json!(bern())))]);
    let agent = Agent::builder("a", model).build().expect("builds");
    assert_eq!(agent.run_as::<City>("Which city?").await.expect("answers"), bern());
}

#[tokio::test]
async fn an_answer_that_never_fits_is_asked_for_as_often_as_the_retries_say() {
    let bad = || Turn::text(r#"{"name": "Bern"}"#);
    let model = ScriptedModel::new([bad(), bad(), bad(), Turn::text(json!(bern()).to_string())]);
    let agent = Agent::builder("a", model.clone()).build().expect("builds");
    let patient = Structured::<City>::new().expect("a schema").retries(3);
    assert_eq!(agent.typed_with(patient).expect("builds").run("Which city?").await.expect("answers"), bern());
    assert_eq!(model.calls(), 4);

    let model = ScriptedModel::new([bad(), bad(), bad()]);
    let agent = Agent::builder("a", model.clone()).build().expect("builds");
    let hasty = Structured::<City>::new().expect("a schema").retries(2);
    let error = agent.typed_with(hasty).expect("builds").run("Which city?").await.expect_err("never fits");
    assert_eq!((error.kind(), model.calls()), (ErrorKind::InvalidAnswer, 3));
}

#[tokio::test]
async fn usage_counts_every_retry() {
    let bad = || Turn::text("no");
    let model = ScriptedModel::new([bad(), bad(), Turn::text(json!(bern()).to_string())]);
    let agent = Agent::builder("a", model).build().expect("builds");
    let typed = agent.typed_with(Structured::<City>::new().expect("a schema").retries(2)).expect("builds");
    let end = typed.start(RunRequest::user("Which city?")).await.expect("runs").into_result().expect("finishes");
    assert_eq!((typed.read(&end).expect("fits"), end.usage.calls), (bern(), 3));
}

#[tokio::test]
async fn a_conversation_of_the_untyped_agent_goes_on_in_it() {
    let model = ScriptedModel::new([Turn::text("Hello."), Turn::text(json!(bern()).to_string())]);
    let agent = Agent::builder("a", model.clone()).store(MemoryJournal::default()).build().expect("builds");
    agent.session("s").send("Hi").await.expect("answers");
    let typed = agent.typed::<City>().expect("builds");
    let request = RunRequest::user("Which city?").session("s");
    let end = typed.start(request).await.expect("runs").into_result().expect("finishes");
    assert_eq!(typed.read(&end).expect("fits"), bern());
    assert_eq!(model.requests()[1].texts()[..2], ["Hi", "Hello."]);
}
