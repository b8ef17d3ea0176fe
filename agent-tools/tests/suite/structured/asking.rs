//! Requests for structured output, and their streamed answers.

use agent_core::{
    AssistantMessage, Block, Chunk, Error, ErrorKind, FinishReason, ModelParams, Retry, ToolChoice, ToolSpec,
    model::{Effort, MessageBuilder},
    testing::Turn,
};
use agent_tools::{AnswerMode, Structured};
use serde_json::{Value, json};

use super::{BERN, City, ask, ask_and_listen, bern, cities, info, model};

fn by_tool() -> Turn {
    Turn::call("c1", "final_answer", json!(bern()))
}

#[tokio::test]
async fn a_provider_that_enforces_schemas_is_given_it() {
    let model = model([Turn::text(BERN)], info().with_json_schema());
    let answer = cities().strict(true).call(&model, ask()).await.expect("answers");
    assert_eq!(answer.value, bern());
    let seen = &model.requests()[0];
    let format = seen.params.output.as_ref().expect("a form");
    assert_eq!((format.name.as_str(), format.description.as_deref()), ("City", Some("A city.")));
    assert!(format.strict && format.schema["properties"]["name"]["description"] == "Its name.");
    assert!(seen.tools.is_empty() && seen.system.is_none());
}

#[tokio::test]
async fn a_form_that_providers_do_not_enforce_is_asked_for_by_tool() {
    type People = std::collections::BTreeMap<String, u32>;
    let model = model([Turn::call("c1", "final_answer", json!({"Bern": 134_000}))], info().with_json_schema());
    let answer = Structured::<People>::new().expect("a schema").call(&model, ask()).await.expect("answers");
    assert_eq!(answer.value["Bern"], 134_000);
    assert!(model.requests()[0].params.output.is_none());
}

#[tokio::test]
async fn a_model_that_takes_tools_must_call_one_with_the_answer() {
    let model = model([by_tool()], info());
    let answer = cities().call(&model, ask()).await.expect("answers");
    assert_eq!(answer.value, bern());
    assert_eq!(answer.response.message.blocks(), [Block::text(BERN)]);
    assert_eq!(answer.response.finish, FinishReason::Stop);
    let seen = &model.requests()[0];
    assert_eq!(seen.tools, ["final_answer"]);
    assert_eq!(seen.params.tool_choice, Some(ToolChoice::Tool("final_answer".into())));
    assert!(seen.params.output.is_none());
}

#[tokio::test]
async fn a_model_that_is_to_think_is_asked_and_not_forced() {
    let model = model([by_tool()], info());
    let mut req = ask();
    req.params = ModelParams::default().effort(Effort::High).into();
    assert_eq!(cities().call(&model, req).await.expect("answers").value, bern());
    let seen = &model.requests()[0];
    assert_eq!(seen.params.tool_choice, None);
    assert!(seen.system.as_ref().expect("a system prompt").contains("final_answer"));
}

#[tokio::test]
async fn a_model_without_tools_is_told_the_schema() {
    let model = model([Turn::text(format!("Here:\n```json\n{BERN}\n```"))], info().without_tools());
    assert_eq!(cities().call(&model, ask()).await.expect("answers").value, bern());
    let seen = &model.requests()[0];
    assert!(seen.system.as_ref().expect("a system prompt").contains(r#""people":{"minimum":0,"type":"integer"}"#));
    assert!(seen.tools.is_empty() && seen.params.output.is_none());
}

#[tokio::test]
async fn the_way_can_be_chosen_and_a_text_is_an_answer_in_each() {
    for mode in [AnswerMode::Native, AnswerMode::Tool, AnswerMode::Prompt] {
        let model = model([Turn::text(format!("It is {BERN}."))], info());
        assert_eq!(cities().mode(mode).call(&model, ask()).await.expect("answers").value, bern(), "{mode:?}");
    }
}

#[tokio::test]
async fn one_call_refuses_tools_that_nobody_would_run() {
    let mut req = ask();
    req.tools = [ToolSpec::new("look", "", json!({"type": "object"}))].into_iter().collect();
    let e = cities().call(&model([], info()), req).await.expect_err("tools");
    assert_eq!(e.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn a_schema_of_run_time_needs_no_type() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let structured = Structured::from_schema("a number", schema).expect("valid");
    let answer = structured.call(&model([Turn::text(r#"{"n": "7"}"#)], info()), ask()).await.expect("answers");
    assert_eq!(answer.value, json!({"n": 7}), "text where a number is wanted is converted");
    let e = Structured::<Value>::from_schema("x", json!({"type": 7})).expect_err("no schema");
    assert_eq!(e.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn who_listens_hears_the_answer_as_text_and_the_message_is_what_was_heard() {
    let said = AssistantMessage::new(vec![
        Block::text("There:"),
        Block::tool_call("c1", "final_answer", BERN),
        Block::tool_call("c2", "final_answer", BERN),
    ]);
    let (req, heard) = ask_and_listen();
    let answer = cities().call(&model([Turn::message(said)], info()), req).await.expect("answers");
    let mut rebuilt = MessageBuilder::default();
    heard.lock().expect("free").iter().for_each(|chunk| rebuilt.push(chunk));
    let blocks = [Block::text("There:"), Block::text(BERN), Block::text(BERN)];
    assert_eq!(rebuilt.into_blocks(), blocks);
    assert_eq!(answer.response.message.blocks(), blocks);
}

#[tokio::test]
async fn the_answer_can_be_read_while_it_is_being_said() {
    let (req, heard) = ask_and_listen();
    let text = r#"Bern: {"name": "Bern in Switzerland", "people": 134000}"#;
    cities().call(&model([Turn::text(text)], info().with_json_schema()), req).await.expect("answers");
    let mut partial = cities().partial();
    let mut names = Vec::new();
    for chunk in heard.lock().expect("free").iter() {
        if partial.chunk(chunk) {
            names.extend(partial.value().and_then(|v| v["name"].as_str()).map(str::to_owned));
        }
    }
    names.dedup();
    assert_eq!(names, ["Bern ", "Bern in ", "Bern in Switzerland"]);
    assert_eq!(partial.parse::<City>().expect("whole").people, 134_000);
    partial.chunk(&Chunk::Restart);
    assert_eq!(partial.value(), None);
}

#[tokio::test]
async fn a_schema_that_the_provider_refuses_is_asked_for_by_tool_from_then_on() {
    for said in [
        "Invalid schema for response_format 'City': Expected at most 5000 object properties.",
        "output_format.schema: Schemas contains too many optional parameters (30), which would make grammar compilation inefficient.",
    ] {
        let refusal = Turn::error(move || Error::new(ErrorKind::InvalidRequest, said).with_retry(Retry::Permanent));
        let model = model([refusal, by_tool(), by_tool()], info().with_json_schema());
        let cities = cities();
        for _ in 0..2 {
            assert_eq!(cities.call(&model, ask()).await.expect("answers").value, bern(), "{said}");
        }
        let by_schema: Vec<_> = model.requests().iter().map(|seen| seen.params.output.is_some()).collect();
        assert_eq!(by_schema, [true, false, false], "{said}");
    }
    let said = "Invalid value for 'temperature'";
    let refusal = Turn::error(move || Error::new(ErrorKind::InvalidRequest, said).with_retry(Retry::Permanent));
    let model = model([refusal], info().with_json_schema());
    assert_eq!(cities().call(&model, ask()).await.expect_err("refused").kind(), ErrorKind::InvalidRequest);
    assert_eq!(model.calls(), 1);
}
