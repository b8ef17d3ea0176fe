//! Agents that call agents.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{
    AssistantMessage, Block, Checkpoint, Error, ErrorKind, Event, EventKind, Flow, Key, Message, Middleware, Model,
    ModelInfo, ModelRequest, ModelResponse, Result, RunCx, RunRequest, ToolNext, ToolOutput, ToolRequest, Usage,
    async_trait,
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::{ServiceBuilder, service_fn};

use crate::common::{FnTool, Log, Watch, finished, hangs, hooks, ms, results, roles, slow, stopped, tool};

/// Builds an agent whose model may call `helper` under the key of that name.
fn over(name: &str, model: &ScriptedModel, helper: Agent) -> AgentBuilder {
    Agent::builder(name, model.clone()).middleware(Delegation::new().to("helper", "Helps.", helper))
}

/// Returns a call of the helper.
fn ask(id: &str, message: &str) -> Turn {
    Turn::call(id, "delegate", json!({"agent": "helper", "message": message}))
}

fn builder(name: &str, turns: impl IntoIterator<Item = Turn>) -> AgentBuilder {
    Agent::builder(name, ScriptedModel::new(turns))
}

fn built(builder: AgentBuilder) -> Agent {
    builder.build().expect("builds")
}

fn resume<const N: usize>(checkpoint: Checkpoint, given: [(&str, Value); N]) -> RunRequest {
    RunRequest::resume(checkpoint, given.map(|(id, answer)| (id.to_owned(), answer)))
}

fn asked(checkpoint: &Checkpoint) -> Vec<&str> {
    checkpoint.questions.iter().map(|q| q.id.as_str()).collect()
}

/// Returns a tool that asks before it does anything, and logs its actions.
fn careful(log: &Log) -> FnTool {
    let log = log.clone();
    tool("careful", move |req| {
        let log = log.clone();
        async move {
            let answer: String = req.ask("input", (*req.args).clone())?;
            log.note(format!("{} did {answer}", req.call.id));
            Ok(ToolOutput::text(answer))
        }
    })
}

const VISITS: Key<u32> = Key::new("visits");

fn visit() -> FnTool {
    tool("visit", async |req: ToolRequest| {
        let n = req.cx.globals().update(&VISITS, |n| n.unwrap_or(0) + 1)?;
        Ok(ToolOutput::text(format!("visit {n}")))
    })
}

// --- shared and separate data ---

// NexAU 61
#[tokio::test]
async fn storage_is_shared_and_history_is_not() {
    let helper_model = ScriptedModel::new([Turn::call("k", "visit", json!({})), Turn::text("counted")]);
    let helper = built(Agent::builder("counter", helper_model.clone()).tool(visit()));
    let model = ScriptedModel::new([Turn::call("p", "visit", json!({})), ask("q", "count"), Turn::text("done")]);
    let end = finished(built(over("boss", &model, helper).tool(visit())).run("go").await);
    let told = [("p", "visit 1"), ("q", "counted")].map(|(id, text)| (id.to_owned(), text.to_owned(), false));
    assert_eq!(results(&end.history), told);
    assert_eq!(helper_model.requests()[0].texts(), ["count"], "the helper sees its task and nothing else");
    assert_eq!(helper_model.requests()[1].results(), [("k".to_owned(), "visit 2".to_owned())]);
}

// NexAU 61
#[tokio::test]
async fn ids_name_every_agents_place_in_the_tree() {
    let (watch, session) = (Watch::default(), "the session");
    let leaf = built(builder("leaf", [Turn::text("deep")]));
    let middle = built(over("middle", &ScriptedModel::new([ask("m", "go on"), Turn::text("mid")]), leaf));
    let model = ScriptedModel::new([ask("r", "go"), Turn::text("done")]);
    let root = built(over("root", &model, middle).middleware(watch.clone()));
    let end = finished(root.start(RunRequest::user("go").session(session)).await);
    let begun: Vec<_> = watch.events().into_iter().filter(|e| e.kind == EventKind::RunStarted).map(|e| e.ids).collect();
    let [root, middle, leaf] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!([&*root.path, &*middle.path, &*leaf.path], ["root", "root/middle", "root/middle/leaf"]);
    assert_eq!([root.depth, middle.depth, leaf.depth], [0, 1, 2]);
    assert_eq!([&root.parent_run_id, &middle.parent_run_id], [&None, &Some(root.run_id.clone())]);
    assert_eq!(leaf.parent_run_id, Some(middle.run_id.clone()));
    assert!(begun.iter().all(|ids| ids.root_run_id == root.run_id && &*ids.session == session));
    assert_eq!(begun.iter().map(|ids| &ids.run_id).collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(end.ids, **root);
    let links = watch.pick(|kind| match kind {
        EventKind::SubAgentStarted { call_id, key, run } => Some((call_id.to_string(), key, run)),
        _ => None,
    });
    let linked = [("r", "helper", &middle.run_id), ("m", "helper", &leaf.run_id)];
    assert_eq!(links, linked.map(|(id, key, run)| (id.to_owned(), key.to_owned(), run.clone())));
}

// NexAU 62
#[tokio::test]
async fn what_happens_below_is_reported_between_the_calls_beginning_and_its_answer() {
    let watch = Watch::default();
    let helper = built(builder("helper", [Turn::call("k", "visit", json!({})), Turn::text("counted")]).tool(visit()));
    let model = ScriptedModel::new([ask("p", "count"), Turn::text("done")]);
    finished(built(over("boss", &model, helper).middleware(watch.clone())).run("go").await);
    let line = |e: Event| {
        let what = match e.kind {
            EventKind::RunStarted => "begins".to_owned(),
            EventKind::ToolStarted { call_id, .. } => format!("calls {call_id}"),
            EventKind::ToolAnswered { call_id, .. } => format!("has {call_id}"),
            EventKind::RunEnded { .. } => "ends".to_owned(),
            _ => return None,
        };
        Some(format!("{} {what}", e.ids.agent))
    };
    let lines: Vec<_> = watch.events().into_iter().filter_map(line).collect();
    assert_eq!(
        lines,
        [
            "boss begins",
            "boss calls p",
            "helper begins",
            "helper calls k",
            "helper has k",
            "helper ends",
            "boss has p",
            "boss ends",
        ]
    );
}

#[tokio::test]
async fn usage_rolls_up_and_is_counted_once() {
    let used = |n| Usage::new(n, 0);
    let leaf = built(builder("leaf", [Turn::text("deep").usage(used(1000))]));
    let middle_model = ScriptedModel::new([ask("m", "go").usage(used(100)), Turn::text("mid").usage(used(10))]);
    let middle = built(over("middle", &middle_model, leaf));
    let (watch, model) =
        (Watch::default(), ScriptedModel::new([ask("r", "go").usage(used(1)), Turn::text("done").usage(used(1))]));
    let end = finished(built(over("root", &model, middle).middleware(watch.clone())).run("go").await);
    assert_eq!((end.usage.input, end.usage.calls), (2, 2));
    assert_eq!((end.tree_usage.input, end.tree_usage.calls), (1112, 5));
    let told = watch.pick(|kind| match kind {
        EventKind::RunEnded { usage, .. } => Some(usage.input),
        _ => None,
    });
    assert_eq!(told, [1000, 110, 2], "each run reports its own");
}

/// A model for any number of runs: each makes these calls once and ends.
struct CallsOnce(AssistantMessage);

impl CallsOnce {
    fn new<const N: usize>(calls: [(&str, &str, Value); N]) -> Self {
        let block = |(id, name, args): (&str, &str, Value)| Block::tool_call(id, name, args.to_string());
        Self(AssistantMessage::new(calls.map(block).to_vec()))
    }
}

#[async_trait]
impl Model for CallsOnce {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("calls once")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let begins = matches!(req.messages.last(), Some(Message::User(_)));
        Ok(ModelResponse::new(if begins { self.0.clone() } else { "done".into() }))
    }
}

// NexAU 61 (B)
#[tokio::test]
async fn runs_at_once_do_not_see_each_others_storage_history_or_children() {
    let look = tool("look", |req: ToolRequest| async move {
        tokio::task::yield_now().await;
        let visits = req.cx.globals().get(&VISITS)?;
        Ok(ToolOutput::value(json!([req.cx.ids().root_run_id, visits, req.cx.history().len()])))
    });
    let helper = Agent::builder("helper", CallsOnce::new([("k", "look", json!({}))])).tool(look).exit_on(["look"]);
    let calls = [("v", "visit", json!({})), ("d", "delegate", json!({"agent": "helper", "message": "look"}))];
    let delegation = Delegation::new().to("helper", "Looks.", built(helper));
    let boss = built(Agent::builder("boss", CallsOnce::new(calls)).middleware(delegation).tool(visit()));
    for end in join_all((0..20).map(|_| boss.run("go"))).await {
        let end = finished(end);
        let seen = json!([end.ids.run_id, 1, 1]).to_string();
        let told = [("v", "visit 1".to_owned()), ("d", seen)].map(|(id, text)| (id.to_owned(), text, false));
        assert_eq!(results(&end.history), told);
    }
}

// --- errors ---

// NexAU 59
#[tokio::test]
async fn an_unknown_key_is_told_with_those_that_there_are() {
    let calling = tool("calling", async |req: ToolRequest| {
        let end = req.call_sub_agent("nobody", "hello").await?;
        Ok(ToolOutput::text(end.answer))
    });
    let idle = || built(builder("idle", []));
    let boss = builder("boss", [Turn::call("p", "calling", json!({})), Turn::text("done")])
        .tool(calling)
        .sub_agent("writer", "Writes.", idle())
        .sub_agent("reader", "Reads.", idle());
    let end = finished(built(boss).run("go").await);
    let text = "Sub-agent 'nobody' not found. Available sub-agents: reader, writer";
    assert_eq!(results(&end.history), [("p".to_owned(), text.to_owned(), true)]);
}

#[tokio::test]
async fn a_sub_agent_that_fails_is_a_failed_call_and_the_caller_goes_on() {
    let broken = || Error::new(ErrorKind::Provider, "the provider is down");
    let helper = built(builder("helper", [Turn::error(broken)]));
    let model = ScriptedModel::new([ask("p", "help"), Turn::text("I do it myself")]);
    let end = finished(built(over("boss", &model, helper)).run("go").await);
    assert_eq!(end.answer, "I do it myself");
    let (_, text, failed) = &results(&end.history)[0];
    assert!(*failed && text.contains("the provider is down"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_layer_around_a_sub_agent_bounds_its_whole_run() {
    let helper_model = ScriptedModel::new([Turn::text("slow").delay(Duration::from_secs(60))]);
    let helper = built(Agent::builder("helper", helper_model.clone()));
    let helper = ServiceBuilder::new().timeout(ms(100)).service(helper);
    let model = ScriptedModel::new([ask("p", "help"), Turn::text("done")]);
    let boss = Agent::builder("boss", model).middleware(Delegation::new().to("helper", "Helps.", helper));
    let begun = Instant::now();
    let end = finished(built(boss).run("go").await);
    assert!(results(&end.history)[0].2, "the model is told that it failed");
    assert_eq!((begun.elapsed(), helper_model.open()), (ms(100), 0));
}

#[tokio::test]
async fn any_service_from_a_runs_request_to_its_end_is_an_agent() {
    let remote = service_fn(|request: RunRequest| async move {
        let parent = request.parent.expect("called by a run").cx;
        let ids = parent.ids().child("remote", None, request.run_id);
        let end = agent_core::Finished::new(ids, "from afar", agent_core::ExitReason::Text, Default::default());
        Ok::<_, Error>(agent_core::RunEnd::Finished(Box::new(end)))
    });
    let model = ScriptedModel::new([ask("p", "help"), Turn::text("done")]);
    let boss = Agent::builder("boss", model).middleware(Delegation::new().to("helper", "Helps.", remote));
    assert_eq!(results(&finished(built(boss).run("go").await).history)[0].1, "from afar");
}

#[tokio::test]
async fn a_hook_can_call_a_sub_agent_too() {
    let helper_model = ScriptedModel::new([Turn::text("rule one")]);
    let model = ScriptedModel::new([Turn::text("done")]);
    struct Rules;

    #[async_trait]
    impl Middleware for Rules {
        async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
            let rules = cx.call_sub_agent("rules", "which rules?").await?;
            req.messages.push(Message::system(rules.answer))?;
            Ok(Flow::Continue)
        }
    }

    let rules = built(Agent::builder("r", helper_model));
    let boss = Agent::builder("boss", model.clone()).sub_agent("rules", "Knows the rules.", rules).middleware(Rules);
    let end = finished(built(boss).run("go").await);
    assert_eq!(model.requests()[0].texts(), ["go", "rule one"]);
    assert_eq!((end.usage.calls, end.tree_usage.calls), (1, 2));
}

#[tokio::test]
async fn a_context_that_outlives_its_sub_agent_can_write_no_more_and_does_the_tree_no_harm() {
    let kept = Arc::new(Mutex::new(None));
    let keeper = kept.clone();
    let helper = builder("helper", [Turn::text("helped")]).middleware(hooks::before_agent(move |cx| {
        *keeper.lock().expect("free") = Some(cx.clone());
        Ok(())
    }));
    let late = tool("late", move |_| {
        let cx: RunCx = kept.lock().expect("free").clone().expect("the helper ran");
        async move {
            let e = cx.decide("late", async { Ok(json!(1)) }).await.expect_err("the helper is over");
            Ok(ToolOutput::text(e.kind().as_str()))
        }
    });
    let model = ScriptedModel::new([ask("p", "help"), Turn::call("q", "late", json!({})), Turn::text("done")]);
    let end = finished(built(over("boss", &model, built(helper)).tool(late)).run("go").await);
    assert_eq!((end.answer.as_str(), results(&end.history)[1].1.as_str()), ("done", "store"));
}

// --- hooks of agents above ---

#[tokio::test]
async fn a_middleware_for_all_covers_every_run_below_with_hooks_and_wraps() {
    let all = HookTrace::new("all");
    let leaf = built(builder("leaf", [Turn::text("deep")]).middleware(all.beside("own")));
    let middle = built(over("middle", &ScriptedModel::new([ask("m", "go on"), Turn::text("mid")]), leaf));
    let root_only = all.beside("root only");
    let model = ScriptedModel::new([ask("r", "go"), Turn::text("done")]);
    let root = over("root", &model, middle).middleware_for_all(all.clone()).middleware(root_only.clone());
    finished(built(root).run("go").await);
    assert_eq!(all.seen_of("all.before_agent").len(), 3);
    assert_eq!(all.seen_of("root only.before_agent").len(), 1);
    assert_eq!((all.seen_of("all.before_model").len(), all.seen_of("all.model>").len()), (5, 5));
    assert_eq!((all.seen_of("all.before_tool(").len(), all.seen_of("all.tool>").len()), (2, 2));
    let seen = all.seen();
    let own = seen.iter().position(|line| line == "own.before_model").expect("the leaf's own hook");
    let of_leaf: Vec<_> = seen[own - 1..].iter().filter(|line| !line.ends_with("chunk")).take(8).collect();
    let onion = [
        "all.before_model",
        "own.before_model",
        "all.model>",
        "own.model>",
        "own.<model",
        "all.<model",
        "own.after_model",
        "all.after_model",
    ];
    assert_eq!(of_leaf, onion.each_ref(), "what covers from above stands outside the agent's own");
}

// --- pausing, asking and cancelling ---

/// Builds a tree of three agents anew, as each process does: the leaf asks in one of two calls.
fn tree(models: [&ScriptedModel; 3], log: &Log) -> Agent {
    let leaf = Agent::builder("leaf", models[2].clone()).tool(careful(log)).tool(slow("quick", 0, log));
    let middle = over("middle", models[1], built(leaf)).tool(slow("quick", 0, log));
    built(over("root", models[0], built(middle)).tool(visit()))
}

#[tokio::test]
async fn a_question_from_deep_below_reaches_the_root_and_its_answer_finds_the_way_back() {
    let log = Log::default();
    let leaf = ScriptedModel::new([Turn::calls([("l0", "quick", json!({})), ("l1", "careful", json!({"what": 7}))])]);
    let middle = ScriptedModel::new([Turn::calls([
        ("m0", "quick", json!({})),
        ("m1", "delegate", json!({"agent": "helper", "message": "be careful"})),
    ])]);
    let root = ScriptedModel::new([Turn::call("r0", "visit", json!({})), ask("r1", "go on")]);
    let (kind, checkpoint) = stopped(tree([&root, &middle, &leaf], &log).run("go").await);
    assert_eq!((kind, asked(&checkpoint)), ("interrupted", vec!["r1/m1/l1/input"]));
    assert_eq!(checkpoint.questions[0].payload, json!({"what": 7}));

    let again = Log::default();
    let [root, middle, leaf] =
        ["root done", "middle done", "leaf done"].map(|text| ScriptedModel::new([Turn::text(text)]));
    let agent = tree([&root, &middle, &leaf], &again);
    let end = finished(agent.start(resume(checkpoint, [("r1/m1/l1/input", json!("it"))])).await);
    assert_eq!(end.answer, "root done");
    assert_eq!(again.seen(), ["l1 did it"], "nothing that was done is done again");
    assert_eq!(leaf.requests()[0].texts()[0], "be careful", "the leaf went on with its own history");
    assert_eq!(leaf.requests()[0].results(), [("l0", "l0"), ("l1", "it")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(results(&end.history)[1].1, "middle done");
    assert_eq!((end.tree_usage.calls, end.usage.calls), (7, 3), "what was used before the pause still counts, once");
    assert_eq!((end.tool_calls["visit"], end.tool_calls["delegate"]), (1, 1));
}

#[tokio::test]
async fn questions_of_several_sub_agents_are_answered_one_at_a_time() {
    let log = Log::default();
    let helper_model = ScriptedModel::new([
        Turn::call("k", "careful", json!({"n": 1})),
        Turn::call("k", "careful", json!({"n": 2})),
        Turn::text("first done"),
        Turn::text("second done"),
    ]);
    let both = ["p1", "p2"].map(|id| (id, "delegate", json!({"agent": "helper", "message": id})));
    let model = ScriptedModel::new([Turn::calls(both), Turn::text("done")]);
    let boss = || over("boss", &model, built(Agent::builder("helper", helper_model.clone()).tool(careful(&log))));
    let (_, checkpoint) = stopped(built(boss()).run("go").await);
    assert_eq!(asked(&checkpoint), ["p1/k/input", "p2/k/input"]);
    let (_, checkpoint) = stopped(built(boss()).start(resume(checkpoint, [("p2/k/input", json!("two"))])).await);
    assert_eq!(asked(&checkpoint), ["p1/k/input"]);
    let end = finished(built(boss()).start(resume(checkpoint, [("p1/k/input", json!("one"))])).await);
    assert_eq!(log.seen(), ["k did two", "k did one"]);
    let texts: Vec<_> = results(&end.history).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(texts, ["second done", "first done"]);
    helper_model.assert_finished();
}

#[tokio::test]
async fn a_pause_from_inside_a_sub_agent_pauses_the_tree_and_the_tree_goes_on() {
    let pausing = tool("pausing", async |req: ToolRequest| {
        req.cx.pause();
        Ok(ToolOutput::text("ok"))
    });
    let helper_model = ScriptedModel::new([Turn::call("k", "pausing", json!({})), Turn::text("helped")]);
    let model = ScriptedModel::new([ask("p", "help"), Turn::text("done")]);
    let boss = built(over("boss", &model, built(Agent::builder("helper", helper_model.clone()).tool(pausing))));
    let (kind, checkpoint) = stopped(boss.run("go").await);
    assert_eq!((kind, helper_model.calls(), model.calls()), ("paused", 1, 1));
    let end = finished(boss.start(resume(checkpoint, [])).await);
    assert_eq!((end.answer.as_str(), helper_model.calls()), ("done", 2));
    assert_eq!(results(&end.history)[0].1, "helped", "the sub-agent went on from where it stood");
}

// NexAU 61 (B)
#[tokio::test(start_paused = true)]
async fn cancelling_reaches_the_agents_below_and_they_hand_up_where_they_stand() {
    let (log, again) = (Log::default(), Log::default());
    let calls = [("k1", "quick", json!({})), ("k2", "hang", json!({}))];
    let helper_model = ScriptedModel::new([Turn::calls(calls), Turn::text("helped")]);
    let model = ScriptedModel::new([ask("p", "help"), Turn::text("done")]);
    let helper = |hang: FnTool, log: &Log| {
        let builder = Agent::builder("helper", helper_model.clone()).tool(slow("quick", 1, log));
        built(builder.tool(hang.repeatable()))
    };
    let run = built(over("boss", &model, helper(hangs("hang", &log), &log))).start(RunRequest::user("go"));
    let handle = run.handle();
    let cancel = async {
        sleep(ms(20)).await;
        handle.cancel();
        Instant::now()
    };
    let (end, cancelled_at) = tokio::join!(run, cancel);
    assert!(cancelled_at.elapsed() < ms(100), "{:?}", cancelled_at.elapsed());
    assert_eq!(log.seen(), ["k1 begins", "k2 begins", "k1 ends", "k2 dropped"]);
    let (kind, checkpoint) = stopped(end);
    assert_eq!((kind, roles(&checkpoint.history)), ("cancelled", vec!["user"]));

    let boss = built(over("boss", &model, helper(slow("hang", 1, &again), &again)));
    assert_eq!(finished(boss.start(resume(checkpoint, [])).await).answer, "done");
    assert_eq!(again.seen(), ["k2 begins", "k2 ends"], "the sub-agent's finished call is not run again");
    assert_eq!((helper_model.calls(), model.calls()), (2, 2));
}

/// Turns every failure of a tool into a friendly output.
struct Swallows;

#[async_trait]
impl Middleware for Swallows {
    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        Ok(next.run(req).await.unwrap_or_else(|_| ToolOutput::text("all is well")))
    }
}

#[tokio::test]
async fn a_layer_cannot_swallow_that_a_sub_agent_waits_nor_where_it_stands() {
    let log = Log::default();
    let helper_model = ScriptedModel::new([Turn::call("k", "careful", json!({})), Turn::text("helped")]);
    let model = ScriptedModel::new([ask("p", "help"), Turn::text("done")]);
    let helper = built(Agent::builder("helper", helper_model.clone()).tool(careful(&log)));
    let boss = built(over("boss", &model, helper).middleware(Swallows));
    let (kind, checkpoint) = stopped(boss.run("go").await);
    assert_eq!((kind, asked(&checkpoint)), ("interrupted", vec!["p/k/input"]));
    let end = finished(boss.start(resume(checkpoint, [("p/k/input", json!("it"))])).await);
    assert_eq!((results(&end.history)[0].1.as_str(), helper_model.calls()), ("helped", 2));
}

#[tokio::test]
async fn a_hook_that_fails_before_a_sub_agent_goes_on_does_not_lose_where_it_stands() {
    let (log, fail) = (Log::default(), Arc::new(AtomicBool::new(false)));
    let helper_model = ScriptedModel::new([Turn::call("k", "careful", json!({})), Turn::text("helped")]);
    let model = ScriptedModel::new([ask("p", "help"), Turn::text("done")]);
    let helper = built(Agent::builder("helper", helper_model.clone()).tool(careful(&log)));
    let failing = fail.clone();
    let boss = built(over("boss", &model, helper).middleware(hooks::before_tools(move |_, _| {
        if failing.load(Ordering::SeqCst) { Err(Error::tool("not now")) } else { Ok(()) }
    })));
    let (_, checkpoint) = stopped(boss.run("go").await);
    fail.store(true, Ordering::SeqCst);
    let e = boss.start(resume(checkpoint, [("p/k/input", json!("it"))])).await.expect_err("the hook fails");
    fail.store(false, Ordering::SeqCst);
    let checkpoint = crate::common::carried_over(e.checkpoint().expect("the run can go on"));
    assert_eq!(finished(boss.start(resume(checkpoint, [])).await).answer, "done");
    assert_eq!((helper_model.calls(), log.seen()), (2, vec!["k did it".to_owned()]), "it did not begin anew");
}
