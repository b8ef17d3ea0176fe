//! Properties of every run, whatever models, tools and hooks do.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use agent_core::{
    AssistantMessage, Block, Checkpoint, Finished, Flow, History, Journal, MemoryJournal, Message, ModelRequest,
    ModelService, RunEnd, RunRequest, StateField, StateSchema, Tool, ToolBatch, ToolOutput, ToolRequest, ToolService,
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use futures::{FutureExt, future::BoxFuture};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use tower::{Layer, Service};

use crate::common::{FnTool, Watch, fails, hooks, ms, results, tool};

/// Runs on a clock that advances whenever all tasks wait.
fn on_paused_clock<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("starts").block_on(test)
}

// --- random scripts of calls ---

/// One call of a script.
#[derive(Clone, Debug)]
struct Scripted {
    id: &'static str,
    tool: String,
    arguments: &'static str,
}

const TOOLS: [&str; 8] = ["ok", "slow", "serial", "writes", "reads", "fails", "panics", "asks"];

/// Actions of the hooks on a call, selected by the last part of its tool's name.
const MEDDLING: [&str; 7] = ["let", "answer", "drop", "leave_out", "twice", "first", "deny"];

fn calls() -> impl Strategy<Value = Vec<Vec<Scripted>>> {
    let call = (
        select(&["a", "b", "c", "d", ""][..]),
        prop_oneof![8 => select(&TOOLS[..]), 1 => Just("ghost")],
        prop_oneof![1 => Just(MEDDLING[0]), 1 => select(&MEDDLING[..])],
        select(&["{}", r#"{"x": 1}"#, r#"{"x": "one"}"#, r#"{"x": 1"#, "nonsense", "[1]", ""][..]),
    );
    let call = call.prop_map(|(id, tool, hook, arguments)| Scripted { id, tool: format!("{tool}-{hook}"), arguments });
    vec(vec(call, 1..6), 1..5)
}

fn turn(calls: &[Scripted]) -> Turn {
    let blocks = calls.iter().map(|call| Block::tool_call(call.id, call.tool.as_str(), call.arguments));
    Turn::message(AssistantMessage::new(blocks.collect()))
}

/// Number of times that each call was started and completed, by its idempotency key.
#[derive(Clone, Default)]
struct Effects(Arc<Mutex<BTreeMap<String, (u32, u32)>>>);

impl Effects {
    fn begin(&self, req: &ToolRequest) {
        self.0.lock().expect("free").entry(req.idempotency_key()).or_default().0 += 1;
    }

    fn done(&self, req: &ToolRequest) {
        self.0.lock().expect("free").entry(req.idempotency_key()).or_default().1 += 1;
    }

    fn counts(&self) -> Vec<(u32, u32)> {
        self.0.lock().expect("free").values().copied().collect()
    }
}

/// Returns a tool that takes `millis` milliseconds and returns its call's id.
fn working(name: &str, millis: u64, effects: &Effects) -> FnTool {
    let effects = effects.clone();
    let works = tool(name, move |req| {
        let effects = effects.clone();
        async move {
            effects.begin(&req);
            tokio::time::sleep(ms(millis)).await;
            effects.done(&req);
            Ok(ToolOutput::value(json!({ "result": req.call.id })))
        }
    });
    works.takes(json!({"x": {"type": "integer"}, "k": {}}), &[]).repeatable()
}

/// Returns a tool that asks before it does anything.
fn asking(name: &str, effects: &Effects) -> FnTool {
    let effects = effects.clone();
    tool(name, move |req| {
        let effects = effects.clone();
        async move {
            let answer: String = req.ask("name", Value::Null)?;
            effects.begin(&req);
            effects.done(&req);
            Ok(ToolOutput::text(answer))
        }
    })
}

fn all_tools(effects: &Effects) -> impl Iterator<Item = Arc<dyn Tool>> {
    let names = TOOLS.iter().flat_map(|tool| MEDDLING.map(|hook| (*tool, format!("{tool}-{hook}"))));
    names.map(|(tool, name)| {
        Arc::new(match tool {
            "ok" => working(&name, 0, effects),
            "slow" => working(&name, 30, effects),
            "serial" => working(&name, 10, effects).with(agent_core::ToolOptions::serial),
            "writes" => working(&name, 20, effects).with(|o| o.writes("k", Some("result"))),
            "reads" => working(&name, 5, effects).with(|o| o.reads("k", "k")),
            "fails" => fails(&name, "no"),
            // Keeps the panic's message out of the test's output.
            "panics" => crate::common::tool(&name, async |_| std::panic::resume_unwind(Box::new("boo"))),
            _ => asking(&name, effects),
        }) as _
    })
}

/// Adds hooks that treat each call as its tool's name says.
fn meddle(builder: AgentBuilder) -> AgentBuilder {
    let in_batch = hooks::before_tools(|_, batch| {
        for mut call in std::mem::take(&mut batch.calls) {
            match call.request.call.name.rsplit('-').next() {
                Some("answer") => call.answer(ToolOutput::text("answered")),
                Some("drop") => call.drop_with("dropped"),
                Some("leave_out") => continue,
                Some("twice") => batch.calls.extend(ToolBatch::new([call.request.clone()]).calls),
                Some("first") => {
                    batch.calls.insert(0, call);
                    continue;
                }
                _ => {}
            }
            batch.calls.push(call);
        }
        Ok(())
    });
    let one_by_one = hooks::before_tool(|_, req| {
        let denied = req.call.name.ends_with("-deny");
        Ok(if denied { Flow::Answer(ToolOutput::error("denied")) } else { Flow::Continue })
    });
    builder.middleware(in_batch).middleware(one_by_one)
}

/// Outcome of one script.
struct Outcome {
    end: Finished,
    model: ScriptedModel,
    watch: Watch,
    effects: Effects,
    journal: MemoryJournal,
}

/// Runs a script to its end, cancelling it at these times and answering its questions one at a
/// time.
async fn play(script: &[Vec<Scripted>], concurrency: usize, cancels: &[u64]) -> Outcome {
    let model = ScriptedModel::new(script.iter().map(|calls| turn(calls)).chain([Turn::text("done")]));
    let (watch, effects, journal) = (Watch::default(), Effects::default(), MemoryJournal::default());
    let builder = Agent::builder("a", model.clone())
        .state(StateSchema::default().key("k", StateField::of::<Vec<String>>().default_value(json!([]))))
        .store(journal.clone())
        .tools(all_tools(&effects))
        .tool_concurrency(concurrency)
        .middleware(watch.clone());
    let agent = meddle(builder).build().expect("builds");
    let mut request = RunRequest::user("go").session("s");
    let mut cancels = cancels.iter();
    loop {
        let run = agent.start(request);
        let handle = run.handle();
        let end = match cancels.next() {
            Some(at) => tokio::join!(run, tokio::time::sleep(ms(*at)).map(|()| handle.cancel())).0,
            None => run.await,
        };
        let checkpoint = match end.expect("does not fail") {
            RunEnd::Finished(end) => return Outcome { end: *end, model, watch, effects, journal },
            RunEnd::Interrupted(c) | RunEnd::Cancelled(c) => c,
            other => panic!("{other:?}"),
        };
        let kept = Checkpoint::from_json(&checkpoint.to_json().expect("JSON")).expect("the same");
        let asked = kept.questions.last().map(|q| (q.id.clone(), json!("Ada")));
        request = RunRequest::resume(kept, asked);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_answered_once_in_call_order_and_nothing_that_was_done_is_done_again(
        script in calls(),
        concurrency in 1..5usize,
        cancels in prop_oneof![Just(vec![]), vec((0..15u64).prop_map(|n| n * 5), 1..4)],
    ) {
        let steps = script.len() + 1;
        let outcome = on_paused_clock(play(&script, concurrency, &cancels));
        let Outcome { end, model, watch, effects, journal } = outcome;

        prop_assert_eq!((end.steps as usize, model.calls(), end.answer.as_str()), (steps, steps, "done"));
        model.assert_finished();
        let again = History::from_messages(end.history.iter().cloned());
        prop_assert_eq!(again.as_ref().ok(), Some(&end.history), "the conversation is paired");
        prop_assert_eq!(results(&end.history).len(), script.iter().map(Vec::len).sum::<usize>());
        for (id, text, is_error) in results(&end.history) {
            let own = ["answered", "Ada"].contains(&text.as_str()) || text == id;
            prop_assert!(is_error || own, "call {} was given the result {}", id, text);
        }

        let (mut told, mut kept) = (watch.answered(), results(&end.history));
        told.sort();
        kept.sort();
        prop_assert_eq!(told, kept, "one event for each call, with what is kept");

        for (begun, done) in effects.counts() {
            prop_assert_eq!(done, 1, "what was done is not done again, however often the run stops");
            prop_assert!(begun == 1 || !cancels.is_empty(), "only what was cancelled is begun again");
        }
        let no_effect = |name: &str| name.starts_with("fails") || name.starts_with("panics");
        let counted = end.tool_calls.iter().filter(|(name, _)| !no_effect(name)).map(|(_, n)| *n as usize);
        prop_assert_eq!(counted.sum::<usize>(), effects.counts().len());

        let wrote = end.history.iter().filter_map(Message::as_tool).filter(|m| m.name().starts_with("writes"));
        let wrote = wrote.filter(|m| !m.is_error() && m.parts() != [agent_core::Part::text("answered")]);
        let mut wrote: Vec<_> = wrote.map(|m| json!(m.call_id())).collect();
        let mut merged = end.state["k"].as_array().expect("a list").clone();
        wrote.sort_by_key(Value::to_string);
        merged.sort_by_key(Value::to_string);
        prop_assert_eq!(merged, wrote, "every result is merged into the state once");

        let session = on_paused_clock(journal.index("s")).expect("reads").look(|index| index.view("a"));
        prop_assert_eq!(session.history, end.history, "the journal says the same");
    }
}

// --- random stacks ---

/// A layer that logs when it is entered.
#[derive(Clone)]
struct Note<const N: usize>(HookTrace);

/// The service of [`Note`].
#[derive(Clone)]
struct Noted<const N: usize, S>(HookTrace, S);

impl<const N: usize, S> Layer<S> for Note<N> {
    type Service = Noted<N, S>;

    fn layer(&self, inner: S) -> Noted<N, S> {
        Noted(self.0.clone(), inner)
    }
}

macro_rules! noted {
    ($request:ty, $service:ty, $what:literal) => {
        impl<const N: usize> Service<$request> for Noted<N, $service> {
            type Response = <$service as Service<$request>>::Response;
            type Error = agent_core::Error;
            type Future = BoxFuture<'static, agent_core::Result<Self::Response>>;

            fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<agent_core::Result<()>> {
                self.1.poll_ready(cx)
            }

            fn call(&mut self, req: $request) -> Self::Future {
                self.0.note(concat!($what, ">"));
                self.1.call(req)
            }
        }
    };
}
noted!(ModelRequest, ModelService, "model");
noted!(ToolRequest, ToolService, "tool");

#[derive(Clone, Copy, Debug)]
enum Part {
    Middleware(&'static str),
    ModelLayer(usize),
    ToolLayer(usize),
}

/// Generates stacks in which every item has a unique name.
fn stacks() -> impl Strategy<Value = Vec<Part>> {
    let middlewares = ["A", "B", "C", "D"].map(Part::Middleware);
    let layers = [0, 1].map(Part::ModelLayer).into_iter().chain([0, 1].map(Part::ToolLayer));
    let all: Vec<_> = middlewares.into_iter().chain(layers).collect();
    (Just(all).prop_shuffle(), 0..9usize).prop_map(|(all, few)| all.into_iter().take(few).collect())
}

fn build(stack: &[Part], trace: &HookTrace) -> Agent {
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 1})), Turn::text("done")]);
    let start = Agent::builder("a", model).tool(crate::common::double("f"));
    let agent = stack.iter().fold(start, |builder, part| match part {
        Part::Middleware(name) => builder.middleware(trace.beside(name)),
        Part::ModelLayer(0) => builder.model_layer(Note::<0>(trace.beside("Note<0>"))),
        Part::ModelLayer(_) => builder.model_layer(Note::<1>(trace.beside("Note<1>"))),
        Part::ToolLayer(0) => builder.tool_layer(Note::<0>(trace.beside("Note<0>"))),
        Part::ToolLayer(_) => builder.tool_layer(Note::<1>(trace.beside("Note<1>"))),
    });
    agent.build().expect("builds")
}

/// Returns the names after `line` in the part `section` of an explanation.
fn explained(agent: &Agent, section: &str, line: &str) -> Vec<String> {
    let lines = agent.explain().lines().skip_while(|l| *l != section).skip(1).take_while(|l| l.starts_with("  "));
    let mut names = lines.filter_map(|l| l.trim().strip_prefix(line)?.strip_prefix(": "));
    names.next().map(|names| names.split(" -> ").map(str::to_owned).collect()).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_an_agent_explains_is_the_order_in_which_it_runs(stack in stacks()) {
        let trace = HookTrace::new("log");
        let agent = build(&stack, &trace);
        let end = on_paused_clock(agent.run("go")).expect("runs");
        prop_assert_eq!(end.as_str(), "finished");
        let ran = |hook: &str, times: usize| {
            let names: Vec<_> = trace.seen().iter().filter_map(|l| l.strip_suffix(hook).map(str::to_owned)).collect();
            let one = names.len() / times;
            assert!(names.chunks(one.max(1)).all(|again| again == &names[..one]), "the same every time: {names:?}");
            names[..one].to_vec()
        };
        for (section, core, before, after, wrap, times) in [
            ("model call:", &["journal", "model"][..], ".before_model", ".after_model", ".model>", 2),
            ("tool call:", &["checks", "journal", "tool"][..], ".before_tool(f)", ".after_tool(f)", ".tool>", 1),
        ] {
            let hooks = explained(&agent, section, "hooks, once per call");
            let mut outwards = ran(after, times);
            outwards.reverse();
            prop_assert_eq!((&ran(before, times), &outwards), (&hooks, &hooks));
            let attempt = explained(&agent, section, "once per attempt");
            let core: Vec<_> = core.iter().map(ToString::to_string).collect();
            prop_assert_eq!([ran(wrap, times), core].concat(), attempt);
        }
    }
}
