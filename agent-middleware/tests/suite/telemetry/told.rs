//! Decisions of other layers, as named events of the run.

use std::sync::atomic::{AtomicU32, Ordering};

use agent_core::{Error, ErrorKind, Exit, Retry, RunCx, ToolOutput, testing::Turn};
use agent_exec::Agent;
use agent_middleware::{
    ContextCompaction, Judge, Telemetry, ToolRetry,
    compaction::{ClearToolResults, Keep, Trigger},
    review::Judgement,
    telemetry::Capture,
};
use serde_json::json;

use super::{
    recorder::{Recorder, fields},
    world::{Named, finished, tool},
};

/// Runs an agent whose tool is busy at first, whose conversation is compacted and whose answer is
/// revised once.
async fn run(capture: Capture) {
    let tries = AtomicU32::new(0);
    let busy = tool("flaky", move |_| {
        let first = tries.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            match first {
                true => Err(Error::new(ErrorKind::Overloaded, "busy").with_retry(Retry::Temporary(None))),
                false => Ok(ToolOutput::text("word ".repeat(100))),
            }
        }
    });
    let judge = Judge::by(|_: RunCx, exit: Exit| async move {
        Ok(match exit.answer.as_str() {
            "better" => Judgement::Stop,
            _ => Judgement::Continue("Do better.".into()),
        })
    });
    let compaction = ContextCompaction::builder()
        .trigger(Trigger::Messages(3))
        .strategy(ClearToolResults::new().keep(Keep::Iterations(0)));
    let turns = [Turn::call("c", "flaky", json!({})), Turn::text("good"), Turn::text("better")];
    let agent = Agent::builder("told", Named::new("told", turns))
        .tool(busy)
        .middleware(judge)
        .middleware(compaction.build().expect("sound"))
        .middleware(ToolRetry::new())
        .middleware(Telemetry::new().capture(capture));
    assert_eq!(finished(agent.build().expect("builds").run("go").await).answer, "better");
}

#[tokio::test(start_paused = true)]
async fn judgements_compactions_and_retries_are_events_of_the_run() {
    let recorder = Recorder::start();
    run(Capture::Spans).await;
    let spans = recorder.spans();
    let of = |name: &str| {
        let events = recorder.events(name);
        let span = spans.one("invoke_agent told").span_context.span_id();
        assert!(events.iter().all(|event| event.trace_context().expect("of a span").span_id == span), "{name}");
        events.iter().map(fields).collect::<Vec<_>>()
    };
    let [sent_back, good] = &of("gen_ai.evaluation.result")[..] else { panic!("two judgements") };
    assert_eq!(sent_back["gen_ai.evaluation.name"], "judgement");
    assert_eq!(sent_back["gen_ai.evaluation.score.label"], "continue");
    assert_eq!(sent_back["gen_ai.evaluation.explanation"], "Do better.");
    assert_eq!(good["gen_ai.evaluation.score.label"], "stop");
    assert!(good.contains_key("gen_ai.evaluation.score.value"));

    let [compacted, ..] = &of("agent.compaction")[..] else { panic!("a compaction") };
    let names = [
        "agent.compaction.failed",
        "agent.compaction.messages.after",
        "agent.compaction.messages.before",
        "agent.compaction.reason",
        "agent.compaction.strategy",
        "agent.compaction.tokens.after",
        "agent.compaction.tokens.before",
        "agent.journal.seq",
    ];
    assert_eq!(compacted.keys().collect::<Vec<_>>(), names);
    let is = |name: &str| compacted[&format!("agent.compaction.{name}")].as_str();
    assert_eq!([is("strategy"), is("reason"), is("messages.after")], ["clear_tool_results", "compact_auto", "3"]);

    let [again] = &of("agent.layer.decision")[..] else { panic!("one retry") };
    let of = |name: &str| again[&format!("agent.layer.{name}")].as_str();
    assert_eq!([of("name"), of("decision"), of("about")], ["retry", "again", "overloaded"]);
}

#[tokio::test(start_paused = true)]
async fn why_an_answer_was_sent_back_is_content() {
    let recorder = Recorder::start();
    run(Capture::Off).await;
    let judgements = recorder.events("gen_ai.evaluation.result");
    assert_eq!(judgements.len(), 2);
    assert!(judgements.iter().all(|event| !fields(event).contains_key("gen_ai.evaluation.explanation")));
}
