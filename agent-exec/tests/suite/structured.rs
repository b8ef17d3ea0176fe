//! Agents with structured output.

use std::sync::{Arc, Mutex};

use agent_core::{
    Chunk, Error, ErrorKind, EventKind, ExitReason, FinishReason, Model, ModelInfo, Result, RunRequest, ToolChoice,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_llm::{TransportFn, XmlTools, transport_fn};
use agent_tools::{InvalidAnswer, Structured};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::common::{double, finished, roles};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Sum {
    total: i64,
    words: String,
}

fn eight() -> Sum {
    Sum { total: 8, words: "twice four".into() }
}

fn sums() -> Structured<Sum> {
    Structured::new().expect("a valid schema")
}

fn agent(model: &ScriptedModel) -> AgentBuilder {
    Agent::builder("adder", model.clone()).tool(double("double")).middleware(sums())
}

/// Returns the three kinds of models.
fn kinds() -> [ModelInfo; 3] {
    let info = ModelInfo::new("m");
    [info.clone().with_json_schema(), info.clone(), info]
}

#[tokio::test]
async fn an_agent_calls_tools_and_then_answers_in_the_form() {
    for (at, info) in kinds().into_iter().enumerate() {
        let by_tool = Turn::call("c2", "final_answer", json!(eight()));
        let answer = if at == 1 { by_tool } else { Turn::text(format!("So:\n```json\n{}\n```", json!(eight()))) };
        let model = ScriptedModel::new([Turn::call("c1", "double", json!({"x": 4})), answer]).with_info(info);
        let end = finished(agent(&model).build().expect("builds").run("Twice four?").await);
        assert_eq!(end.parse::<Sum>().expect("a sum"), eight());
        assert_eq!(
            (end.reason.clone(), roles(&end.history)),
            (ExitReason::Text, vec!["user", "assistant", "tool", "assistant"])
        );
        assert!(end.history.last().and_then(|m| m.as_assistant()).is_some_and(|m| !m.has_calls()));
        assert_eq!(end.usage.calls, 2);
        model.assert_finished();
    }
}

/// Returns the body of an agent's first request, from a model over this transport.
async fn asked<M: Model>(model: impl FnOnce(TransportFn) -> Result<M>) -> Value {
    let body = Arc::new(Mutex::new(Value::Null));
    let seen = body.clone();
    let transport = transport_fn(move |request| {
        *seen.lock().expect("free") = serde_json::from_slice(request.body()).expect("JSON");
        async { Err(Error::new(ErrorKind::Transport, "that is enough")) }
    });
    let agent = Agent::builder("adder", model(transport).expect("a model")).tool(double("double")).middleware(sums());
    agent.build().expect("builds").run("Twice four?").await.expect_err("no answer comes");
    let body = body.lock().expect("free");
    body.clone()
}

#[tokio::test]
async fn a_provider_that_enforces_forms_is_told_of_it_and_for_another_it_is_a_tool() {
    let chat = asked(|t| agent_llm::model("openai:gpt-5").transport(t).retries(0).build()).await;
    assert_eq!(
        (&chat["response_format"]["type"], chat["tools"].as_array().map(Vec::len)),
        (&json!("json_schema"), Some(1))
    );
    let responses = asked(|t| agent_llm::model("openai:gpt-5@responses").transport(t).retries(0).build()).await;
    assert_eq!(responses["text"]["format"]["type"], "json_schema");
    let claude = asked(|t| agent_llm::model("anthropic:claude-opus-5").transport(t).retries(0).build()).await;
    assert_eq!(claude["output_config"]["format"]["type"], "json_schema");
    let gemini = asked(|t| agent_llm::model("gemini:gemini-3-pro-preview").transport(t).retries(0).build()).await;
    assert!(gemini["generationConfig"]["responseJsonSchema"].is_object(), "{gemini}");

    let ours = asked(|t| agent_llm::model("vllm:m").base_url("http://ours/v1").transport(t).retries(0).build()).await;
    let tools = [&ours["tools"][0]["function"]["name"], &ours["tools"][1]["function"]["name"]];
    assert_eq!((&ours["response_format"], tools), (&Value::Null, [&json!("double"), &json!("final_answer")]));
    let older = asked(|t| agent_llm::model("gemini:gemini-2.5-pro").transport(t).retries(0).build()).await;
    assert!(older["generationConfig"].get("responseJsonSchema").is_none(), "{older}");
}

#[tokio::test]
async fn beside_other_tools_the_model_must_call_one_of_them() {
    let model = ScriptedModel::new([Turn::call("c2", "final_answer", json!(eight()))]);
    finished(agent(&model).build().expect("builds").run("Twice four?").await);
    let seen = &model.requests()[0];
    assert_eq!(seen.tools, ["double", "final_answer"]);
    assert_eq!(seen.params.tool_choice, Some(ToolChoice::Required));
}

#[tokio::test]
async fn an_answer_beside_a_call_came_too_early_and_does_not_stop_the_call() {
    let early = [("c1", "final_answer", json!({"total": 0, "words": "?"})), ("c2", "double", json!({"x": 4}))];
    let model = ScriptedModel::new([Turn::calls(early), Turn::call("c3", "final_answer", json!(eight()))]);
    let end = finished(agent(&model).build().expect("builds").run("Twice four?").await);
    assert_eq!((end.parse::<Sum>().expect("a sum"), end.tool_calls["double"]), (eight(), 1));
}

#[tokio::test]
async fn a_corrected_answer_is_one_step_and_the_refused_one_is_not_kept() {
    let model = ScriptedModel::new([Turn::text("eight"), Turn::text(json!(eight()).to_string())]);
    let end = finished(agent(&model).build().expect("builds").run("Twice four?").await);
    assert_eq!(end.parse::<Sum>().expect("a sum"), eight());
    assert_eq!((end.steps, end.usage.calls, roles(&end.history)), (1, 2, vec!["user", "assistant"]));
}

#[tokio::test]
async fn an_answer_that_never_fits_fails_the_run_with_its_text_and_where_it_stood() {
    let model = ScriptedModel::new([Turn::text("eight"), Turn::text("8")]);
    let e = agent(&model).build().expect("builds").run("Twice four?").await.expect_err("no sum");
    assert_eq!((e.kind(), InvalidAnswer::of(&e).map(|kept| kept.text.as_str())), (ErrorKind::InvalidAnswer, Some("8")));
    assert_eq!(roles(&e.checkpoint().expect("a checkpoint").history), ["user"]);
}

#[tokio::test]
async fn who_reads_the_run_sees_the_answer_grow() {
    for info in kinds() {
        let call = Turn::text("{} let me see").and_call("c1", "double", json!({"x": 4}));
        let text = r#"{"total": 8, "words": "twice four"}"#;
        let model = ScriptedModel::new([call, Turn::text("8"), Turn::text(text)]).with_info(info);
        let mut run = agent(&model).build().expect("builds").start(RunRequest::user("Twice four?").streaming(true));
        let (mut partial, mut words, mut restarts) = (sums().partial(), Vec::new(), 0);
        while let Some(event) = run.next().await {
            restarts += usize::from(event.kind == EventKind::Chunk(Chunk::Restart));
            if partial.event(&event) {
                words.extend(partial.value().and_then(|v| v["words"].as_str()).map(str::to_owned));
            }
        }
        words.dedup();
        assert_eq!((words, restarts), (vec!["twice ".to_owned(), "twice four".to_owned()], 1));
        assert_eq!(partial.parse::<Sum>(), Some(eight()), "also at the end of the run");
        assert_eq!(finished(run.await).parse::<Sum>().expect("a sum"), eight());
    }
}

#[tokio::test]
async fn a_run_that_ended_otherwise_has_no_value_and_says_why() {
    let model = ScriptedModel::new([Turn::call("c1", "double", json!({"x": 4}))]);
    let end = finished(agent(&model).max_steps(1).build().expect("builds").run("Twice four?").await);
    let e = end.parse::<Sum>().expect_err("no answer");
    assert_eq!((e.kind(), e.context("exit_reason")), (ErrorKind::InvalidAnswer, Some("step_limit")));

    let cut = ScriptedModel::new([Turn::text(r#"{"total": 8"#).finish(FinishReason::Length)]);
    let e = agent(&cut).build().expect("builds").run("Twice four?").await.expect_err("cut");
    assert_eq!(e.kind(), ErrorKind::InvalidAnswer);
}

#[tokio::test]
async fn a_tool_that_has_the_name_of_the_answer_is_refused() {
    let model = ScriptedModel::new([]);
    let agent = agent(&model).tool(double("final_answer")).build().expect("builds");
    let e = agent.run("Twice four?").await.expect_err("two of a name");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("rename it"), "{e}");
}

#[tokio::test]
async fn a_model_that_takes_no_tools_calls_them_and_answers_in_the_form_all_the_same() {
    let call = "Let me see.\n<tool_use><tool_name>double</tool_name><parameter><x>4</x></parameter></tool_use>";
    let answer = "<tool_use><tool_name>final_answer</tool_name><total>8</total><words>twice four</words></tool_use>";
    let model =
        ScriptedModel::new([Turn::text(call), Turn::text(answer)]).with_info(ModelInfo::new("m").without_tools());
    let agent = Agent::builder("adder", XmlTools::new(model.clone())).tool(double("double")).middleware(sums());
    let end = finished(agent.streaming(true).build().expect("builds").run("Twice four?").await);
    assert_eq!((end.parse::<Sum>().expect("a sum"), end.tool_calls["double"]), (eight(), 1));
    let seen = &model.requests()[1];
    assert_eq!(seen.roles(), ["user", "assistant", "user"]);
    assert!(seen.texts()[2].contains("<result>\n8\n</result>"), "{}", seen.texts()[2]);
    assert!(seen.system.as_ref().expect("told of tools").contains("Your answer must be a call."));
}
