//! Runs whose steps an engine keeps as bytes: wherever their process dies, driven again from their beginning they end as if
//! it had not.

mod common;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::SystemTime,
};

use agent_core::{
    Ask, AssistantMessage, Block, Caps, Checkpoint, Effect, Error, ErrorKind, ExitReason, Finished, GlobalStorage, Key,
    MemoryJournal, Message, Middleware, Model, ModelInfo, ModelRequest, ModelResponse, Question, Result, RunCx, RunIds,
    RunRequest, Tool, ToolBatch, ToolOptions, ToolOutput, ToolRequest, ToolResults, ToolSpec, Usage, Verdict,
    async_trait,
    run::Clock,
    testing::{ByteAttempt, ByteEngine, Outside, ScriptedModel, Turn},
    tool::{Doubt, Reconciled},
};
use agent_exec::Agent;
use agent_middleware::{Delegation, ToolRetry};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::common::{finished, ms, tool};

const COUNT: Key<u32> = Key::new("count");

/// A model that says what belongs to the step that the conversation is in.
struct Steps {
    says: Vec<AssistantMessage>,
    calls: Arc<AtomicU32>,
}

impl Steps {
    fn new<const N: usize>(calls: &Arc<AtomicU32>, steps: [&[(&str, &str, Value)]; N]) -> Self {
        let block = |(id, name, args): &(&str, &str, Value)| Block::tool_call(*id, *name, args.to_string());
        let message = |calls: &[_]| AssistantMessage::new(calls.iter().map(block).collect());
        Self { says: steps.map(message).into_iter().chain(["done".into()]).collect(), calls: calls.clone() }
    }
}

#[async_trait]
impl Model for Steps {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("steps")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        Ok(ModelResponse::new(self.says[step].clone()).with_usage(Usage::new(1, 1)))
    }
}

/// A tool that does something outside, counts it in the shared storage, and is called by its effect.
struct Deed {
    name: &'static str,
    effect: Effect,
    outside: Outside,
    cut_off: CutOff,
}

/// The keys of calls that happened and whose process died before anybody knew: what they counted died with it.
#[derive(Clone, Default)]
struct CutOff(Arc<Mutex<BTreeSet<String>>>);

impl CutOff {
    fn add(&self, key: &str) {
        self.0.lock().expect("no panic").insert(key.to_owned());
    }
}

#[async_trait]
impl Tool for Deed {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.effect)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let output = ToolOutput::text(format!("did {}", req.call.id));
        req.cx.globals().update(&COUNT, |count| count.unwrap_or(0) + 1)?;
        self.outside.happened(&req.idempotency_key(), self.effect, &output);
        Ok(output)
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let key = req.idempotency_key();
        let found = self.outside.output(&key).inspect(|_| self.cut_off.add(&key));
        Ok(found.map_or(Reconciled::DidNot, Reconciled::Happened))
    }
}

/// A tool that asks, sleeps and fails once before it does what it is for.
struct Slow;

#[async_trait]
impl Tool for Slow {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("slow", "", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let may: bool = req.ask("may", json!("May I?"))?;
        let drawn = req.decide("drawn", async { Ok(json!(7)) }).await?;
        req.cx.sleep(&req.call.id, ms(60_000)).await?;
        Ok(ToolOutput::text(format!("{may} {drawn}")))
    }
}

/// A tool whose first try fails for now.
struct Unsteady(Arc<AtomicU32>);

#[async_trait]
impl Tool for Unsteady {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("unsteady", "", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent)
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Error::tool("not now").with_retry(agent_core::Retry::Temporary(None))),
            _ => Ok(ToolOutput::text("steady")),
        }
    }
}

/// Decides in every hook, and steers the run once.
struct Deciding;

#[async_trait]
impl Middleware for Deciding {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        cx.decide("begin", async { Ok(json!(agent_core::run::new_id())) }).await.map(drop)
    }

    async fn before_tools(&self, cx: &RunCx, _: &mut ToolBatch) -> Result<()> {
        let drawn = cx.decide("draw", async { Ok(json!(agent_core::run::new_id())) }).await?;
        assert!(drawn.is_string());
        Ok(())
    }

    async fn after_tools(&self, cx: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        if cx.step() == 1 {
            cx.steer(Message::user("and be quick"))?;
        }
        Ok(Verdict::Proceed)
    }
}

/// What outlives the processes.
#[derive(Default)]
struct World {
    engine: ByteEngine,
    outside: Outside,
    cut_off: CutOff,
    model_calls: Arc<AtomicU32>,
    unsteady: Arc<AtomicU32>,
    began: OnceLock<Instant>,
}

impl World {
    /// The tree of agents, as each process builds it anew.
    fn tree(&self, globals: &GlobalStorage) -> Agent {
        let deed = |name, effect| Deed { name, effect, outside: self.outside.clone(), cut_off: self.cut_off.clone() };
        let calls = |prefix: &str| {
            let call = |n: u32, name: &'static str| (format!("{prefix}{n}"), name);
            [call(1, "pure"), call(2, "again"), call(3, "looks"), call(4, "once")]
        };
        let boss: Vec<_> = calls("b").into_iter().collect();
        let helper: Vec<_> = calls("h").into_iter().collect();
        let message = |calls: &[(String, &'static str)]| -> Vec<(String, String, Value)> {
            calls.iter().map(|(id, name)| (id.clone(), (*name).to_owned(), json!({}))).collect()
        };
        let (boss, helper) = (message(&boss), message(&helper));
        fn borrowed(calls: &[(String, String, Value)]) -> Vec<(&str, &str, Value)> {
            calls.iter().map(|(id, name, args)| (id.as_str(), name.as_str(), args.clone())).collect()
        }
        let tools = |builder: agent_exec::AgentBuilder| {
            builder
                .tool(deed("pure", Effect::Pure))
                .tool(deed("again", Effect::Idempotent))
                .tool(deed("looks", Effect::Reconcilable))
                .tool(deed("once", Effect::AtMostOnce))
        };
        let says = Steps::new(&self.model_calls, [&borrowed(&helper)]);
        let helper = tools(Agent::builder("helper", says)).build().expect("builds");
        let delegate = ("d1", "delegate", json!({"agent": "helper", "message": "help"}));
        let first: Vec<_> = borrowed(&boss).into_iter().chain([delegate]).collect();
        let then = [("s1", "slow", json!({})), ("u1", "unsteady", json!({})), ("b1", "once", json!({}))];
        let says = Steps::new(&self.model_calls, [&first, &then]);
        let builder = tools(Agent::builder("boss", says)).tool(Slow).tool(Unsteady(self.unsteady.clone()));
        let builder = builder.middleware(Deciding).middleware(ToolRetry::new()).globals(globals.clone());
        builder.middleware(Delegation::new().to("helper", "Helps.", helper)).build().expect("builds")
    }

    /// The paused time, which all processes have in common.
    fn clock(&self) -> Clock {
        let began = *self.began.get_or_init(Instant::now);
        Clock::new(move || SystemTime::UNIX_EPOCH + began.elapsed())
    }

    /// What somebody answers who looks at the world.
    fn answer(&self, question: &Question) -> Value {
        if question.kind != Doubt::KIND {
            return json!(true);
        }
        let found = self.outside.look(question);
        if found.is_object() {
            self.cut_off.add(question.payload["idempotency_key"].as_str().expect("has a key"));
        }
        found
    }

    /// Drives the run in processes that die at these of their steps, and then in one that does not.
    async fn run(&self, deaths: &[(u64, bool)]) -> (Finished, Option<u32>, usize) {
        let mut died = 0;
        for at in deaths.iter().copied().map(Some).chain([None]) {
            let attempt = self.engine.attempt();
            let attempt = at.into_iter().fold(attempt, |attempt, (step, keeps)| attempt.dying_at(step, keeps));
            let globals = GlobalStorage::default();
            let request = RunRequest::user("go").run_id("r").durable(Arc::new(attempt.clone()));
            let request = request.resource(self.clock());
            let run = self.tree(&globals).start(request);
            let answering = async {
                loop {
                    let question = self.engine.asked().await;
                    let answer = self.answer(&question);
                    self.engine.answer(question.id, answer);
                }
            };
            tokio::select! {
                biased;
                end = run => return (finished(end), globals.get(&COUNT).expect("is a number"), died),
                () = attempt.died() => died += 1,
                () = answering => {}
            }
        }
        unreachable!("the last process does not die")
    }
}

/// Everything of the end that must not depend on how often the process died, a line each.
fn told(end: &Finished) -> Vec<String> {
    let Finished { answer, reason, history, steps, usage, tree_usage, tool_calls, .. } = end;
    let messages = history.iter().map(|message| json!(message).to_string());
    let counts = json!([answer, reason, steps, usage, tree_usage, tool_calls, end.state]);
    messages.chain(counts.as_array().into_iter().flatten().map(Value::to_string)).collect()
}

/// The lines of either side that the other does not have.
#[track_caller]
fn assert_same(one: &Finished, two: &Finished, deaths: &[(u64, bool)]) {
    let (one, two) = (told(one), told(two));
    let only =
        |of: &[String], not: &[String]| of.iter().filter(|line| !not.contains(line)).cloned().collect::<Vec<_>>();
    assert!(one == two, "{deaths:?}: {:#?} became {:#?}", only(&two, &one), only(&one, &two));
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_process_died_at_any_step_ends_as_one_that_did_not_and_does_nothing_twice_in_silence() {
    let straight = World::default();
    let (end, count, _) = straight.run(&[]).await;
    let steps = straight.engine.names().len() as u64;
    assert!(steps > 25, "{:?}", straight.engine.names());
    assert_eq!(count, Some(9), "four calls of each agent, and one more");
    assert_eq!((end.answer.as_str(), end.steps), ("done", 3));
    let mut died = 0;
    for first in 1..=steps {
        for keeps in [false, true] {
            for then in [None, Some((1, false)), Some((2, false)), Some((3, true)), Some((7, false))] {
                let deaths: Vec<_> = [Some((first, keeps)), then].into_iter().flatten().collect();
                let world = World::default();
                let (again, counted, times) = world.run(&deaths).await;
                assert_same(&again, &end, &deaths);
                assert_eq!(world.outside.doubled(), [""; 0], "{deaths:?}");
                assert_eq!(world.outside.deeds(), straight.outside.deeds(), "{deaths:?}");
                let cut_off = u32::try_from(world.cut_off.0.lock().expect("no panic").len()).expect("few");
                assert_eq!(counted.map(|counted| counted + cut_off), count, "{deaths:?}");
                died += times;
            }
        }
    }
    assert!(died > 400, "{died} processes died");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_driven_again_when_it_is_over_asks_nobody_anything() {
    let world = World::default();
    let (end, ..) = world.run(&[]).await;
    let asked = world.model_calls.load(Ordering::SeqCst);
    let (again, ..) = world.run(&[]).await;
    assert_same(&again, &end, &[]);
    assert_eq!(world.model_calls.load(Ordering::SeqCst), asked, "no model was called");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_was_begun_is_not_begun_again_by_the_next_process() {
    let straight = World::default();
    straight.run(&[]).await;
    let names = straight.engine.names();
    assert!(names.iter().any(|name| name.contains("/sleep/")), "{names:?}");
    let steps = names.len() as u64;
    for last in steps - 6..steps {
        let world = World::default();
        let began = Instant::now();
        world.run(&[(last, true), (1, false)]).await;
        assert!(began.elapsed() < ms(120_000), "one minute is slept once: {:?} at step {last}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_driven_again_from_its_beginning_is_refused() {
    let agent = || Agent::builder("a", ScriptedModel::new([Turn::text("hi")]));
    let durable = |request: RunRequest| request.durable(Arc::new(ByteEngine::default().attempt()));
    let refusal = async |agent: agent_exec::AgentBuilder, request| {
        let end = agent.build().expect("builds").start(request).await;
        let e = end.expect_err("is refused");
        assert_eq!(e.kind(), ErrorKind::Config, "{e}");
        e.message().to_owned()
    };
    let nameless = refusal(agent(), durable(RunRequest::user("go"))).await;
    assert!(nameless.contains("run_id"), "{nameless}");
    let kept_twice =
        refusal(agent().store(MemoryJournal::default()), durable(RunRequest::user("go").run_id("r"))).await;
    assert!(kept_twice.contains("store"), "{kept_twice}");
    let checkpoint = Checkpoint::new(RunIds::root("a", "s"), "");
    let elsewhere = refusal(agent(), durable(RunRequest::resume(checkpoint, []).run_id("r"))).await;
    assert!(elsewhere.contains("first messages"), "{elsewhere}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let ask = |req: &ToolRequest| {
        req.ask_with(Ask::new("sure", json!(null)).schema(json!({"type": "boolean"})))?.parse::<bool>()
    };
    let tool = tool("act", move |req| async move { Ok(ToolOutput::text(ask(&req)?.to_string())) }).repeatable();
    let model = ScriptedModel::new([Turn::call("c1", "act", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(tool).build().expect("builds");
    let engine = ByteEngine::default();
    let run = agent.start(RunRequest::user("go").run_id("r").durable(Arc::new(engine.attempt())));
    engine.answer("c1/sure", json!("perhaps"));
    let corrected = async {
        let refused = async || engine.names().iter().any(|name| name.contains("/answer/c1/sure/0"));
        while !refused().await {
            tokio::task::yield_now().await;
        }
        engine.answer("c1/sure", json!(true));
        std::future::pending::<()>().await;
    };
    let end = tokio::select! { end = run => finished(end), () = corrected => unreachable!("waits") };
    assert_eq!(common::results(&end.history), [("c1".to_owned(), "true".to_owned(), false)]);
}

#[tokio::test(start_paused = true)]
async fn what_steps_of_earlier_attempts_used_counts_against_the_caps_of_the_run() {
    let engine = ByteEngine::default();
    let agent = || {
        let model = ScriptedModel::new([Turn::call("c1", "noop", json!({})), Turn::text("done")]);
        let noop = tool("noop", |_| async { Ok(ToolOutput::text("ok")) }).repeatable();
        Agent::builder("a", model).tool(noop).build().expect("builds")
    };
    let request = |attempt: &ByteAttempt| {
        let request = RunRequest::user("go").run_id("r").caps(Caps::default().model_calls(1));
        request.durable(Arc::new(attempt.clone()))
    };
    let dying = engine.attempt().dying_at(2, true);
    let (first, second) = (agent(), agent());
    tokio::select! { biased; _ = first.start(request(&dying)) => panic!("dies"), () = dying.died() => {} }
    let end = finished(second.start(request(&engine.attempt())).await);
    assert_eq!(end.reason, ExitReason::Budget, "the first attempt's call is the only one that the cap allows");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_in_time_has_its_default() {
    let world = World::default();
    let ask = |req: &ToolRequest| {
        let ask = Ask::new("sure", json!(null)).within(ms(60_000)).or("nobody was there");
        req.ask_with(ask)?.parse::<String>()
    };
    let tool = tool("act", move |req| async move { Ok(ToolOutput::text(ask(&req)?)) }).repeatable();
    let model = ScriptedModel::new([Turn::call("c1", "act", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(tool).build().expect("builds");
    let request = RunRequest::user("go").run_id("r").durable(Arc::new(world.engine.attempt())).resource(world.clock());
    let began = Instant::now();
    let end = finished(agent.start(request).await);
    assert_eq!(common::results(&end.history), [("c1".to_owned(), "nobody was there".to_owned(), false)]);
    assert!((60_000..61_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_kept_sub_agent_used_counts_against_the_caps_of_its_caller() {
    let calls = Arc::default();
    let agent = || {
        let helper = Agent::builder("helper", Steps::new(&calls, [])).build().expect("builds");
        let boss = Steps::new(&calls, [&[("d1", "delegate", json!({"agent": "helper", "message": "help"}))]]);
        let boss = Agent::builder("boss", boss).middleware(Delegation::new().to("helper", "Helps.", helper));
        boss.build().expect("builds")
    };
    let request = |attempt: &ByteAttempt| {
        let request = RunRequest::user("go").run_id("r").caps(Caps::default().model_calls(2));
        request.durable(Arc::new(attempt.clone()))
    };
    for step in 1.. {
        let engine = ByteEngine::default();
        let (dying, first, second) = (engine.attempt().dying_at(step, true), agent(), agent());
        tokio::select! {
            biased;
            end = first.start(request(&dying)) => {
                assert!(step > 5, "it died {step} times");
                return assert_eq!(finished(end).reason, ExitReason::Budget);
            }
            () = dying.died() => {}
        }
        let end = finished(second.start(request(&engine.attempt())).await);
        assert_eq!(end.reason, ExitReason::Budget, "the two calls that the cap allows were made, at step {step}");
    }
}
