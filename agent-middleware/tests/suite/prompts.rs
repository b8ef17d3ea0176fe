//! Additions to the prompt: reminders, the environment, cache marks, the todo list.

use crate::common;

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Block, Message, ModelInfo, ModelRequest, ModelResponse, Part, SystemMessage, ToolBatch, ToolCall,
    ToolMessage, ToolSpec, Usage, message::Cache, middleware::Middlewares,
};
use agent_middleware::{PromptCaching, Reminders, RuntimeEnvironment, TodoList, prompt::TodoStatus};
use common::{alone, begin, call, end, finished, model_stack, restarted, root};
use serde_json::json;
use tower::ServiceExt;

/// Returns the request that the model receives with `list` in the run's next step, on a model of
/// this provider.
async fn sent(list: &Middlewares, run: &agent_core::engine::RunDriver, provider: &str) -> ModelRequest {
    run.next_step();
    let seen = Arc::new(Mutex::new(None));
    let log = seen.clone();
    let model = model_stack(list, move |req: ModelRequest| {
        *log.lock().expect("lock") = Some(req);
        async { Ok(ModelResponse::new("yes").with_usage(Usage::new(900, 100))) }
    });
    let mut req = ModelRequest::new(run.cx().clone());
    req.model = Some(Arc::new(ModelInfo::new("m").with_provider(provider).with_context_window(50_000)));
    req.system = Some(SystemMessage::new(vec![Part::text("Be kind.")]));
    req.tools =
        ["f", "write_todos"].map(|name| ToolSpec::new(name, "", json!({"type": "object"}))).into_iter().collect();
    model.oneshot(req).await.expect("answers");
    seen.lock().expect("lock").take().expect("was sent")
}

fn texts(req: &ModelRequest) -> Vec<String> {
    req.messages.iter().map(Message::text).collect()
}

fn conversation(run: &agent_core::engine::RunDriver) {
    run.push(Message::user("Why?")).expect("fits");
    let turn = AssistantMessage::new(vec![Block::tool_call("c1", "f", "{}")]);
    run.push_turn(turn, &[ToolMessage::text("c1", "f", "six", false)]).expect("fits");
}

// --- reminders ---

#[tokio::test]
async fn a_reminder_is_in_one_call_only_and_grows_urgent() {
    let (list, run) = (alone(Reminders::new().steps(6).tokens().every(2, "Mind the list.")), root(|_| {}));
    run.push(Message::user("Why?")).expect("fits");
    assert_eq!(texts(&sent(&list, &run, "p").await), ["Why?"], "nothing was said yet");
    let turn = AssistantMessage::new(vec![Block::tool_call("c1", "f", "{}")]);
    run.push_turn(turn, &[ToolMessage::text("c1", "f", "six", false)]).expect("fits");
    let mut said = Vec::new();
    for _ in 2..=6 {
        said.push(texts(&sent(&list, &run, "p").await).split_off(3).join("|"));
        assert_eq!(run.cx().history().len(), 3, "nothing is kept");
    }
    let tokens = "Only 49000 tokens of your context are left: finish soon and write little.";
    assert_eq!(said[0], format!("Step 2 of 6.\n{tokens}\nMind the list."));
    assert_eq!(said[1], format!("Step 3 of 6.\n{tokens}"));
    assert!(said[2].starts_with("You have 3 steps left of 6: come to an end.\n"));
    assert!(said[4].starts_with("This is your last step"));
}

// --- the environment ---

#[tokio::test]
async fn the_environment_is_told_in_the_system_prompt_and_stays_the_same_for_the_run() {
    let environment = |directory: &str| alone(RuntimeEnvironment::new().directory(directory).fact("Branch", "main"));
    let (list, run) = (environment("here"), root(|_| {}));
    begin(&list, run.cx()).await;
    run.push(Message::user("Why?")).expect("fits");
    let system = sent(&list, &run, "p").await.system.expect("there").text();
    assert!(system.starts_with("Be kind.\n# Environment\nWorking directory: here\nOperating system: "), "{system}");
    assert!(system.ends_with("Branch: main"), "{system}");
    let (list, again) = (environment("elsewhere"), restarted(&run, |_| {}));
    begin(&list, again.cx()).await;
    assert_eq!(sent(&list, &again, "p").await.system.expect("there").text(), system, "as the run began");
}

// --- cache marks ---

#[tokio::test]
async fn marks_are_set_after_the_tools_the_system_prompt_and_the_newest_messages() {
    let (list, run) = (alone(PromptCaching::new().keep(Cache::Long)), root(|_| {}));
    conversation(&run);
    let req = sent(&list, &run, "anthropic").await;
    let mark = |part: &Part| match part {
        Part::Text(text) => text.cache,
        _ => None,
    };
    assert_eq!(req.tools.iter().map(|tool| tool.cache).collect::<Vec<_>>(), [None, Some(Cache::Long)]);
    assert_eq!(req.system.as_ref().map(|system| mark(&system.parts()[0])), Some(Some(Cache::Long)));
    let marks: Vec<_> = req
        .messages
        .iter()
        .map(|message| match message {
            Message::User(message) => mark(&message.parts()[0]),
            Message::Tool(message) => mark(&message.parts()[0]),
            _ => None,
        })
        .collect();
    assert_eq!(marks, [Some(Cache::Long), None, Some(Cache::Long)]);
    assert_eq!(run.cx().history().iter().map(Message::text).collect::<Vec<_>>(), ["Why?", "", "six"]);
    assert!(!format!("{:?}", run.cx().history()).contains("Some(Long)"), "what is kept has no mark");

    let other = sent(&list, &run, "openai").await;
    assert!(!format!("{:?} {:?}", other.messages, other.tools.to_vec()).contains("Some(Long)"), "nobody asked");
    let few = alone(PromptCaching::new().min_messages(4));
    let req = sent(&few, &run, "anthropic").await;
    assert!(!format!("{:?}", req.messages).contains("Some(Short)"), "three messages are too few");
}

#[tokio::test]
async fn marks_leave_the_rest_of_the_conversation_as_it_is() {
    let (list, run) = (alone(PromptCaching::new()), root(|_| {}));
    for n in 0..20 {
        run.push(Message::user(format!("{n}"))).expect("fits");
    }
    let req = sent(&list, &run, "anthropic").await;
    let history = run.cx().history();
    let others = history.iter().zip(req.messages.iter()).filter(|(own, sent)| own != sent).count();
    assert_eq!((req.messages.len(), others), (20, 2), "two have marks");
}

// --- the todo list ---

#[tokio::test]
async fn the_list_is_written_whole_survives_a_restart_and_goes_with_the_run() {
    let (list, run) = (alone(TodoList::new()), root(|_| {}));
    run.push(Message::user("Why?")).expect("fits");
    let system = sent(&list, &run, "p").await.system.expect("there").text();
    assert!(system.contains("`write_todos`"), "{system}");
    let tool = list[0].tools().remove(0);
    let todos = json!([{"content": "look", "status": "completed"}, {"content": "leap", "status": "in_progress"}]);
    let out = tool.call(call(run.cx(), "c1", "write_todos", json!({"todos": todos}))).await.expect("writes");
    assert_eq!(out.to_text(), "The list is now:\n[x] look\n[~] leap");
    let again = restarted(&run, |_| {});
    let kept = TodoList::todos(again.cx()).expect("kept");
    assert_eq!((kept.len(), kept[1].status, kept[1].content.as_str()), (2, TodoStatus::InProgress, "leap"));
    let bad =
        tool.call(call(run.cx(), "c2", "write_todos", json!({"todos": [{"content": "x", "status": "maybe"}]}))).await;
    assert!(bad.is_err());
    end(&list, again.cx(), finished(again.cx())).await;
    assert!(again.cx().globals().snapshot().is_empty());
}

#[tokio::test]
async fn a_list_that_was_taken_out_of_the_conversation_is_shown_again() {
    let (list, run) = (alone(TodoList::new()), root(|_| {}));
    conversation(&run);
    let tool = list[0].tools().remove(0);
    let args = json!({"todos": [{"content": "leap", "status": "pending"}]});
    let out = tool.call(call(run.cx(), "c2", "write_todos", args.clone())).await.expect("writes");
    let shown = async |run: &agent_core::engine::RunDriver| texts(&sent(&list, run, "p").await).split_off(3);
    assert_eq!(shown(&run).await, ["The list is now:\n[ ] leap"], "the turn is not in the conversation");
    let turn = AssistantMessage::new(vec![Block::tool_call("c2", "write_todos", args.to_string())]);
    run.push_turn(turn, &[out.to_message("c2", "write_todos")]).expect("fits");
    assert_eq!(shown(&run).await, ["", "The list is now:\n[ ] leap"], "as it was written, and not again");
}

#[tokio::test]
async fn two_writes_of_the_list_in_one_message_are_both_refused() {
    let (list, run) = (alone(TodoList::new()), root(|_| {}));
    let request = |id: &str, name: &str| {
        let call = ToolCall { id: id.into(), name: name.into(), arguments: "{}".into(), raw: None };
        agent_core::ToolRequest::new(run.cx().clone(), call, json!({}))
    };
    let mut batch = ToolBatch::new([request("a", "write_todos"), request("b", "f"), request("c", "write_todos")]);
    list[0].before_tools(run.cx(), &mut batch).await.expect("looks");
    let answered: Vec<_> = batch.calls.iter().map(|call| call.answer.is_some()).collect();
    assert_eq!(answered, [true, false, true]);
    let mut one = ToolBatch::new([request("a", "write_todos")]);
    list[0].before_tools(run.cx(), &mut one).await.expect("looks");
    assert!(one.calls[0].answer.is_none());
}
