//! The event stream of a run.

use std::collections::BTreeSet;

use agent_core::{
    Chunk, Effect, Event, EventKind, MemoryJournal, Middleware, ModelResponse, Result, RunCx, RunRequest, ToolOutput,
    ToolRequest, async_trait,
    event::Position,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder, Run};
use agent_middleware::Delegation;
use futures::{FutureExt, StreamExt, future::join_all};
use serde_json::json;
use tokio::time::Instant;

use crate::common::{FnTool, Log, double, finished, hangs, ms, slow, tool};

fn agent(turns: impl IntoIterator<Item = Turn>) -> AgentBuilder {
    Agent::builder("a", ScriptedModel::new(turns))
}

fn start(builder: AgentBuilder) -> Run {
    builder.build().expect("builds").start(RunRequest::user("go"))
}

/// Starts a run that calls a tool in its first step and answers in its second.
fn two_steps() -> Run {
    start(
        agent([Turn::text("let me see").and_call("1", "f", json!({"x": 3})), Turn::text("it is six")])
            .tool(double("f")),
    )
}

/// Returns all events of a run, read while it is driven.
async fn read(run: &mut Run) -> Vec<Event> {
    run.by_ref().collect().await
}

fn durable(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| event.position.after == 0).cloned().collect()
}

fn assert_in_order(events: &[Event]) {
    let positions: Vec<_> = events.iter().map(|event| event.position).collect();
    let wrong = positions.windows(2).find(|pair| pair[0] >= pair[1]);
    assert!(wrong.is_none(), "{wrong:?}");
}

fn text(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::Chunk(Chunk::Text { delta, .. }) => Some(delta),
        _ => None,
    }
}

// --- one reader ---

#[tokio::test]
async fn a_run_is_a_stream_from_its_beginning_to_its_end_and_then_still_has_its_result() {
    let mut run = two_steps();
    let events = read(&mut run).await;
    assert_in_order(&events);
    assert_eq!(events[0].kind, EventKind::RunStarted);
    assert!(matches!(events.last().expect("events").kind, EventKind::RunEnded { .. }));
    assert_eq!(run.next().await, None, "the end is the end");
    assert_eq!(finished(run.await).answer, "it is six");
}

#[tokio::test]
async fn chunks_come_between_the_steps_beginning_and_its_answer_and_make_the_message() {
    let mut run = two_steps();
    let (mut said, mut open) = (String::new(), false);
    let mut steps = Vec::new();
    for event in read(&mut run).await {
        match &event.kind {
            EventKind::StepStarted { .. } => open = true,
            EventKind::Chunk(_) => {
                assert!(open, "a chunk outside a step's answer");
                said.push_str(text(&event).unwrap_or_default());
            }
            EventKind::ModelAnswered { step, message, usage } => {
                assert_eq!((std::mem::take(&mut said), usage.calls), (message.text(), 1));
                steps.push(*step);
                open = false;
            }
            _ => {}
        }
    }
    assert_eq!(steps, [1, 2]);
}

#[tokio::test]
async fn a_step_reads_in_the_order_in_which_it_happens() {
    let mut run = two_steps();
    let name = |event: &Event| match &event.kind {
        EventKind::Chunk(_) => None,
        EventKind::RunStarted => Some("run started"),
        EventKind::Message(_) => Some("message"),
        EventKind::StepStarted { .. } => Some("step started"),
        EventKind::ModelAnswered { .. } => Some("model answered"),
        EventKind::ToolStarted { .. } => Some("tool started"),
        EventKind::ToolAnswered { .. } => Some("tool answered"),
        EventKind::ToolsAnswered { .. } => Some("tools answered"),
        EventKind::RunEnded { .. } => Some("run ended"),
        other => panic!("unexpected: {other:?}"),
    };
    let names: Vec<_> = read(&mut run).await.iter().filter_map(name).collect();
    assert_eq!(
        names,
        [
            "run started",
            "message",
            "step started",
            "model answered",
            "tool started",
            "tool answered",
            "tools answered",
            "step started",
            "model answered",
            "run ended",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn that_a_tool_runs_is_told_when_it_begins_whatever_its_effect() {
    for effect in [Effect::Pure, Effect::AtMostOnce] {
        let (log, begun) = (Log::default(), Instant::now());
        let pure = slow("t", 1000, &log).with(|options| options.effect(effect));
        let mut run = start(agent([Turn::call("1", "t", json!({})), Turn::text("done")]).tool(pure));
        let is_start = |event: &Event| matches!(event.kind, EventKind::ToolStarted { .. });
        while let Some(event) = run.next().await {
            if is_start(&event) {
                break;
            }
        }
        assert_eq!((begun.elapsed(), log.seen().len()), (ms(0), 1), "{effect:?}");
    }
}

// --- several readers ---

#[tokio::test]
async fn all_readers_get_the_same() {
    let mut run = two_steps();
    let early = run.handle().events();
    let events = read(&mut run).await;
    assert_eq!(early.collect::<Vec<_>>().await, events);
}

#[tokio::test]
async fn a_reader_who_comes_after_the_end_gets_every_durable_event() {
    let mut run = two_steps();
    let handle = run.handle();
    let live = read(&mut run).await;
    drop(run);
    let late: Vec<_> = handle.events().collect().await;
    assert_eq!(late, durable(&live));
    assert!(late.len() < live.len(), "what only passed by is over");
}

#[tokio::test]
async fn a_run_that_nobody_watched_can_be_read_when_it_is_over() {
    let watched = durable(&read(&mut two_steps()).await);
    let mut run = two_steps();
    let handle = run.handle();
    finished((&mut run).await);
    for run in [Some(run), None] {
        let late: Vec<_> = handle.events().collect().await;
        let what = |events: &[Event]| -> Vec<_> { events.iter().map(|e| (e.position, e.kind.clone())).collect() };
        assert_eq!(what(&late), what(&watched), "the run is {}", if run.is_some() { "there" } else { "gone" });
    }
}

#[tokio::test]
async fn a_reader_who_comes_while_a_tool_runs_sees_what_led_to_it() {
    let log = Log::default();
    let turns = [Turn::call("1", "f", json!({"x": 3})), Turn::call("2", "hang", json!({}))];
    let mut run = start(agent(turns).tool(double("f")).tool(hangs("hang", &log)));
    while log.seen().is_empty() {
        assert!(futures::poll!(&mut run).is_pending());
        tokio::task::yield_now().await;
    }
    let mut late = run.handle().events();
    let seen: Vec<_> = std::iter::from_fn(|| late.next().now_or_never().flatten()).collect();
    assert_eq!(seen[0].kind, EventKind::RunStarted);
    let started = |event: &Event| matches!(event.kind, EventKind::ToolStarted { .. });
    assert_eq!(seen.iter().filter(|event| started(event)).count(), 2, "{seen:#?}");
    assert!(started(seen.last().expect("events")), "and nothing is told before it happens");
}

#[tokio::test]
async fn a_reader_who_comes_in_the_middle_misses_no_durable_event_and_gets_no_half_message() {
    let live = read(&mut two_steps()).await;
    for seen in 1..live.len() {
        let mut run = two_steps();
        let mut begun = Vec::new();
        while begun.len() < seen {
            begun.push(run.next().await.expect("an event"));
        }
        let late = run.handle().events();
        let rest = read(&mut run).await;
        let late: Vec<_> = late.collect().await;
        assert_in_order(&late);
        assert_eq!(durable(&late), durable(&[begun, rest].concat()), "after {seen} events");
        let mut said = String::new();
        for event in &late {
            said.push_str(text(event).unwrap_or_default());
            if let EventKind::ModelAnswered { message, .. } = &event.kind {
                let said = std::mem::take(&mut said);
                assert!(said.is_empty() || said == message.text(), "half a message after {seen} events: {said}");
            }
        }
    }
}

/// More events than a reader may lag behind.
fn long_answer() -> Turn {
    Turn::text("word ".repeat(3000)).delay(ms(1))
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_does_not_read_holds_nobody_up_and_then_gets_every_durable_event() {
    let journal = MemoryJournal::default();
    let turns = [Turn::text("before"), Turn::call("1", "f", json!({"x": 1})), long_answer()];
    let agent = agent(turns).tool(double("f")).store(journal.clone()).build().expect("builds");
    finished(agent.start(RunRequest::user("earlier").session("s")).await);
    let mut run = agent.start(RunRequest::user("go").session("s"));
    let (asleep, mut dozing) = (run.handle().events(), run.handle().events());
    let mut first = vec![dozing.next().now_or_never().flatten()];
    let live = read(&mut run).await;
    first.extend((0..3).map(|_| dozing.next().now_or_never().flatten()));
    let dozing: Vec<_> = first.into_iter().flatten().chain(dozing.collect::<Vec<_>>().await).collect();
    for late in [asleep.collect::<Vec<_>>().await, dozing] {
        assert_in_order(&late);
        assert_eq!(durable(&late), durable(&live), "and nothing of the session's earlier run");
        assert!(late.len() < live.len() - 1000, "chunks that were missed are not made up for");
    }
}

#[tokio::test]
async fn a_reader_gets_nothing_of_another_agents_run_in_the_same_session() {
    let journal = MemoryJournal::default();
    let log = Log::default();
    let hanging = agent([Turn::call("1", "hang", json!({}))]).tool(hangs("hang", &log)).store(journal.clone());
    let mut run = hanging.build().expect("builds").start(RunRequest::user("go").session("s"));
    while log.seen().is_empty() {
        run.next().await.expect("an event");
    }
    let other = Agent::builder("b", ScriptedModel::new([Turn::text("hello")])).store(journal).build().expect("builds");
    let end = finished(other.start(RunRequest::user("hi").session("s")).await);
    run.handle().cancel();
    let handle = run.handle();
    read(&mut run).await;
    let late: Vec<_> = handle.events().collect().await;
    assert!(late.iter().all(|event| event.ids.run_id != end.ids.run_id), "{late:#?}");
    assert!(matches!(late.last().expect("events").kind, EventKind::RunEnded { .. }));
}

#[tokio::test]
async fn a_dropped_run_ends_its_readers() {
    let log = Log::default();
    let mut run = start(agent([Turn::call("1", "hang", json!({}))]).tool(hangs("hang", &log)));
    while log.seen().is_empty() {
        run.next().await.expect("an event");
    }
    let reader = run.handle().events();
    drop(run);
    let events: Vec<_> = reader.collect().await;
    assert!(matches!(events.last().expect("events").kind, EventKind::ToolStarted { .. }));
}

// --- a tree of runs ---

/// Returns a tool without effects that takes `millis` milliseconds.
fn pure(millis: u64) -> FnTool {
    slow("pure", millis, &Log::default()).with(|options| options.effect(Effect::Pure))
}

/// Delays the run between a model's answer and its consequences: others write meanwhile.
struct Lingers(u64);

#[async_trait]
impl Middleware for Lingers {
    async fn after_model(&self, _: &RunCx, _: &mut ModelResponse) -> Result<()> {
        tokio::time::sleep(ms(self.0)).await;
        Ok(())
    }
}

/// Starts a run over concurrent helpers, each with its own pace.
fn crowd(helpers: u64) -> Run {
    let helper = |n: u64| {
        let turns = [Turn::call("k", "pure", json!({})), Turn::text("helped")];
        agent(turns).tool(pure(10 * (helpers - n) + 1)).middleware(Lingers(3 * n)).build().expect("builds")
    };
    let to_all = |to: Delegation, n| to.to(format!("h{n}"), "", helper(n));
    let calls: Vec<_> =
        (0..helpers).map(|n| (format!("p{n}"), json!({"agent": format!("h{n}"), "message": "go"}))).collect();
    let calls = Turn::calls(calls.iter().map(|(id, args)| (id.as_str(), "delegate", args.clone())));
    let delegation = (0..helpers).fold(Delegation::new(), to_all);
    start(agent([calls, Turn::text("done")]).middleware(delegation))
}

#[tokio::test(start_paused = true)]
async fn agents_that_run_at_once_are_one_stream_in_order_that_a_later_reader_gets_too() {
    let mut run = crowd(5);
    let handle = run.handle();
    let live = read(&mut run).await;
    assert_in_order(&live);
    let late: Vec<_> = handle.events().collect().await;
    assert_eq!(late, durable(&live), "nothing was lost on the way");
    let of = |wanted: fn(&EventKind) -> bool| live.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(of(|kind| matches!(kind, EventKind::ToolStarted { .. })), 10);
    assert_eq!(of(|kind| matches!(kind, EventKind::ToolAnswered { .. })), 10);
    assert_eq!(of(|kind| matches!(kind, EventKind::ModelAnswered { .. })), 12);
    let runs: BTreeSet<_> = live.iter().map(|event| event.ids.run_id.clone()).collect();
    assert_eq!(runs.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn events_of_many_threads_stand_in_one_order() {
    let chatty = tool("chatty", |req: ToolRequest| async move {
        for n in 0..100 {
            req.cx.emit(EventKind::Custom { name: req.call.id.to_string(), value: json!(n) });
            if n % 50 == 0 {
                req.decide("n", async { Ok(json!(n)) }).await?;
            }
        }
        Ok(ToolOutput::text("ok"))
    });
    let ids: Vec<_> = (0..8).map(|n| n.to_string()).collect();
    let calls = Turn::calls(ids.iter().map(|id| (id.as_str(), "chatty", json!({}))));
    let mut run = start(agent([calls, Turn::text("done")]).tool(chatty));
    let handle = run.handle();
    let live = read(&mut run).await;
    assert_in_order(&live);
    for id in &ids {
        let of_one = live.iter().filter_map(|event| match &event.kind {
            EventKind::Custom { name, value } if name == id => value.as_u64(),
            _ => None,
        });
        assert!(of_one.eq(0..100), "what one tool says stays in its order");
    }
    assert_eq!(handle.events().collect::<Vec<_>>().await, durable(&live));
}

#[tokio::test]
async fn runs_of_one_agent_do_not_hear_of_each_other() {
    let agent = agent((0..4).map(|_| Turn::text("hello"))).build().expect("builds");
    let runs = (0..4).map(|_| async {
        let mut run = agent.start(RunRequest::user("go"));
        let events = read(&mut run).await;
        (events, finished(run.await))
    });
    for (events, end) in join_all(runs).await {
        assert!(events.iter().all(|event| event.ids.run_id == end.ids.run_id));
        assert_eq!(events[0].position, Position { seq: 1, after: 0 });
    }
}

#[tokio::test]
async fn a_long_answer_that_comes_at_once_loses_no_piece_on_the_way_to_its_reader() {
    const PIECES: usize = 5000;
    let piece = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n";
    let last = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let whole = piece.repeat(PIECES) + last;
    let provider = agent_llm::transport_fn(move |_| {
        let mut response = http::Response::new(whole.clone().into());
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
        async { Ok(response) }
    });
    let model = agent_llm::model("openai:m").transport(provider).build().expect("builds");
    let agent = Agent::builder("a", model).streaming(true).build().expect("builds");
    let mut run = agent.start(RunRequest::user("go"));
    let mut pieces = 0;
    while let Some(event) = run.next().await {
        pieces += usize::from(matches!(event.kind, EventKind::Chunk(Chunk::Text { .. })));
    }
    assert_eq!(pieces, PIECES);
    assert_eq!(finished(run.await).answer.len(), PIECES);
}

#[tokio::test]
async fn what_a_tool_says_of_its_progress_is_told_while_it_runs_and_not_to_the_model() {
    let counts = tool("count", async |req: ToolRequest| {
        for n in 1..=2 {
            req.progress(json!({"done": n}));
        }
        Ok(ToolOutput::text("2 files"))
    });
    let model = ScriptedModel::new([Turn::call("1", "count", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model.clone()).tool(counts).build().expect("builds");
    let mut run = agent.start(RunRequest::user("go"));
    let mut told = Vec::new();
    while let Some(event) = run.next().await {
        told.push(match event.kind {
            EventKind::ToolStarted { call_id, .. } => format!("{call_id} starts"),
            EventKind::ToolProgress { call_id, progress } => format!("{call_id}: {progress}"),
            EventKind::ToolAnswered { call_id, .. } => format!("{call_id} is answered"),
            _ => continue,
        });
    }
    finished(run.await);
    assert_eq!(told, ["1 starts", r#"1: {"done":1}"#, r#"1: {"done":2}"#, "1 is answered"]);
    assert_eq!(model.requests()[1].results(), [("1".to_owned(), "2 files".to_owned())]);
}

#[tokio::test]
async fn a_request_says_whether_its_run_streams_and_otherwise_the_agent_does() {
    for (agent_streams, request, streams) in
        [(false, None, false), (true, None, true), (false, Some(true), true), (true, Some(false), false)]
    {
        let model = ScriptedModel::new([Turn::text("done")]);
        let agent = Agent::builder("a", model.clone()).streaming(agent_streams).build().expect("builds");
        let ask = RunRequest::user("go");
        finished(agent.start(request.into_iter().fold(ask, RunRequest::streaming)).await);
        assert_eq!(model.requests()[0].stream, streams, "{agent_streams} {request:?}");
    }
}
