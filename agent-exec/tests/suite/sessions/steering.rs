//! Steering messages are not lost, whatever happens to the run.

use std::sync::Arc;

use agent_core::{
    ErrorKind, ExitReason, Journal, MemoryJournal, Message, RunRequest, ToolMessage,
    journal::EntryBody,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;
use tokio::sync::Notify;

use super::{agent, asking, built, busy::settle, entries, on, waiting};
use crate::common::{finished, stopped};

#[tokio::test(start_paused = true)]
async fn a_message_that_was_accepted_is_there_after_the_process_died() {
    let journal = MemoryJournal::default();
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let dies = ScriptedModel::new([Turn::call("1", "waiting", json!({}))]);
    let run = built(agent(&dies, &journal).tool(waiting(&here, &go).repeatable())).start(on("go", "s"));
    let handle = run.handle();
    handle.steer(Message::user("before it began")).expect("accepted");
    let run = tokio::spawn(run);
    here.notified().await;
    handle.steer(Message::user("be brief")).expect("accepted");
    handle.steer(Message::user("be brief")).expect("accepted");
    run.abort();
    assert!(run.await.expect_err("dead").is_cancelled());
    settle().await; // its tool is gone too
    assert_eq!(handle.steer(Message::user("too late")).expect_err("dead").kind(), ErrorKind::Stopped);

    // The process dies once more before it takes the messages.
    let dies = ScriptedModel::new([]);
    let agent_again = built(agent(&dies, &journal).tool(waiting(&here, &go).repeatable()));
    let again = tokio::spawn(agent_again.start(RunRequest::recover("s", [])));
    here.notified().await;
    again.abort();
    assert!(again.await.expect_err("dead").is_cancelled());
    settle().await;

    let model = ScriptedModel::new([Turn::text("done")]);
    let lives = built(agent(&model, &journal).tool(waiting(&here, &go).repeatable()));
    let open = lives.unfinished("s").await.expect("reads").expect("it is open");
    assert_eq!(open.steering.len(), 2, "what was taken in is in the history: {:?}", open.steering);
    go.notify_one();
    finished(lives.start(RunRequest::recover("s", [])).await);
    assert_eq!(model.requests()[0].texts(), ["go", "before it began", "", "gone", "be brief", "be brief"]);
}

#[tokio::test]
async fn a_message_to_a_run_that_waits_for_an_answer_is_read_when_it_goes_on() {
    let journal = MemoryJournal::default();
    let steering = crate::common::tool("steering", async |req: agent_core::ToolRequest| {
        req.cx.steer(Message::user("one more thing"))?;
        req.ask::<String>("input", json!(null)).map(agent_core::ToolOutput::text)
    });
    let model = ScriptedModel::new([Turn::call("1", "steering", json!({})), Turn::text("done")]);
    let agent = built(agent(&model, &journal).tool(steering).tool(asking()));
    let (_, checkpoint) = stopped(agent.start(on("go", "s")).await);
    assert_eq!(agent.unfinished("s").await.expect("reads").expect("open").steering, checkpoint.steering);
    let end = finished(agent.start(RunRequest::recover("s", [("1/input".to_owned(), json!("Ada"))])).await);
    let said = ["go", "", "Ada", "one more thing", "one more thing"];
    assert_eq!(model.requests()[1].texts(), said, "the tool ran twice, and so did what it said");
    let kept = journal.index("s").await.expect("folds").look(|index| index.view("a"));
    assert_eq!(kept.history, end.history);
}

#[tokio::test]
async fn a_message_for_which_the_run_had_no_step_left_is_there_for_the_next_run() {
    let journal = MemoryJournal::default();
    let steering = crate::common::tool("steering", async |req: agent_core::ToolRequest| {
        req.cx.steer(Message::user("and then?"))?;
        Ok(agent_core::ToolOutput::text("ok"))
    });
    let model = ScriptedModel::new([Turn::call("1", "steering", json!({})), Turn::text("then this")]);
    let agent = built(agent(&model, &journal).tool(steering).max_steps(1));
    let end = finished(agent.start(on("go", "s")).await);
    assert_eq!(end.reason, ExitReason::StepLimit);
    finished(agent.start(on("go on", "s")).await);
    assert_eq!(model.requests()[1].texts(), ["go", "", "ok", "and then?", "go on"]);
}

#[tokio::test]
async fn what_cannot_be_said_to_a_run_is_refused_and_the_run_goes_on() {
    let journal = MemoryJournal::default();
    let model = ScriptedModel::new([Turn::text("done")]);
    let agent = built(agent(&model, &journal));
    let run = agent.start(on("go", "s"));
    let handle = run.handle();
    let result = Message::Tool(ToolMessage::text("c", "f", "x", false));
    assert_eq!(handle.steer(result).expect_err("a result").kind(), ErrorKind::History);
    finished(run.await);
    let e = handle.steer(Message::user("hello?")).expect_err("over");
    assert_eq!(e.kind(), ErrorKind::Stopped);
    assert!(e.message().contains("start another one"), "{e}");
    assert!(!entries(&journal, "s").await.iter().any(|e| matches!(e.body, EntryBody::Steered { .. })));
}
