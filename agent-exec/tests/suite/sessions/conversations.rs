//! A conversation with an agent, and the texts of its runs.

use agent_core::{
    ErrorKind, MemoryJournal, Question, RunRequest, ToolOutput, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder, SessionId};
use agent_middleware::Delegation;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::common::{finished, tool};

/// An agent whose tool `pay` asks twice, and whose model calls it first.
fn pays() -> AgentBuilder {
    let pay = tool("pay", async |req: ToolRequest| {
        let may: bool = req.ask("may", json!({"how_much": 3}))?;
        let how: String = req.ask("how", json!(null))?;
        Ok(ToolOutput::text(format!("{may} {how}")))
    });
    let turns = [Turn::call("c", "pay", json!({})), Turn::text("done")];
    Agent::builder("a", ScriptedModel::new(turns)).tool(pay)
}

async fn answer(question: Question) -> agent_core::Result<Value> {
    Ok(match question.kind.as_str() {
        "may" => json!(question.payload["how_much"] == 3),
        _ => json!("by card"),
    })
}

#[tokio::test]
async fn each_message_of_a_conversation_follows_the_one_before() {
    let model = ScriptedModel::new([Turn::text("1"), Turn::text("2"), Turn::text("3")]);
    let agent = Agent::builder("a", model.clone()).store(MemoryJournal::default()).build().expect("builds");
    let ada = agent.session(SessionId::new("ada", "first"));
    assert_eq!(ada.send("one").await.expect("finishes").answer, "1");
    assert_eq!(finished(ada.start("two").await).answer, "2");
    agent.session("bob").send("three").await.expect("finishes");
    assert_eq!(model.requests()[1].texts(), ["one", "1", "two"]);
    assert_eq!(model.requests()[2].texts(), ["three"]);
    assert_eq!(ada.history().await.expect("reads").len(), 4);
    let forgets = Agent::builder("a", ScriptedModel::new([])).build().expect("builds");
    let e = forgets.session("ada").send("one").await.expect_err("it has no store");
    assert_eq!(e.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn the_questions_of_a_run_are_answered_in_place() {
    let agent = pays().build().expect("builds");
    let end = finished(agent.run_answering(RunRequest::user("pay"), answer).await);
    assert_eq!(crate::common::results(&end.history)[0].1, "true by card");
    let stored = pays().store(MemoryJournal::default()).build().expect("builds");
    let end = stored.session("s").send_answering("pay", answer).await.expect("finishes");
    assert_eq!(end.answer, "done");
    let refuses = async |_: Question| -> agent_core::Result<Value> { Err(agent_core::Error::tool("nobody is there")) };
    let e = pays().build().expect("builds").run_answering(RunRequest::user("pay"), refuses).await;
    assert_eq!(e.expect_err("no answer").message(), "nobody is there");
}

#[tokio::test]
async fn a_conversation_that_waits_is_resumed_with_answers() {
    let agent = pays().store(MemoryJournal::default()).build().expect("builds");
    let session = agent.session("s");
    let e = session.send("pay").await.expect_err("it waits");
    assert_eq!((e.kind(), e.questions()[0].kind.as_str()), (ErrorKind::Interrupted, "may"));
    let waits = session.unfinished().await.expect("reads").expect("it waits");
    let end = session.resume([(waits.questions[0].id.clone(), json!(true))]).await.expect("goes on");
    let how = end.checkpoint().expect("it asks again").questions[0].id.clone();
    assert_eq!(finished(session.resume([(how, json!("cash"))]).await).answer, "done");
}

#[tokio::test]
async fn the_texts_of_a_run_are_those_of_its_own_answers() {
    let helper = Agent::builder("helper", ScriptedModel::new([Turn::text("secret thoughts")])).build().expect("builds");
    let boss = ScriptedModel::new([
        Turn::text("I ask. ").and_call("d", "delegate", json!({"agent": "helper", "message": "?"})),
        Turn::text("It is 42."),
    ]);
    let delegation = Delegation::new().to("helper", "Helps.", helper);
    let agent = Agent::builder("boss", boss).middleware(delegation).build().expect("builds");
    let mut run = agent.start(RunRequest::user("?"));
    let texts: Vec<String> = run.texts().collect().await;
    assert!(texts.len() > 2, "they come in pieces: {texts:?}");
    assert_eq!(texts.concat(), "I ask. It is 42.");
    assert_eq!(run.await.expect("finishes").text().expect("a text"), "It is 42.");
}
