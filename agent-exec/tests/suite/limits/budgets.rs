//! Budgets in whole runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{
    BoxFuture, Budget, Caps, Error, ErrorKind, ExitReason, MemoryJournal, ModelInfo, Result, Retry, RunRequest, Usage,
    Window, async_trait,
    budget::{Amounts, Balance, Ledger, MemoryLedger},
    model::PriceTable,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_llm::{ModelRouter, RetryLayer};
use agent_middleware::Delegation;
use serde_json::{Value, json};

use crate::common::{carried_over, finished, gives, ms, results, stopped, tool};

/// Every token costs one millionth of a dollar; only this model has a price.
struct Prices;

impl PriceTable for Prices {
    fn cost(&self, model: &str, usage: &Usage) -> Option<u64> {
        (model == "scripted").then_some(usage.total())
    }
}

fn money(micros: u64) -> Budget {
    Budget::builder().caps(Caps::default().cost(micros)).prices(Prices).build().expect("builds")
}

fn calls_look(n: usize) -> impl Iterator<Item = Turn> {
    (0..n).map(|i| Turn::call(&format!("c{i}"), "look", json!({})).usage(Usage::new(100, 50)))
}

fn agent(model: &ScriptedModel, budget: &Budget) -> AgentBuilder {
    Agent::builder("a", model.clone()).tool(gives("look", json!("ok"))).budget(budget.clone())
}

async fn used(budget: &Budget) -> Amounts {
    let balance = budget.balance().await.expect("in memory");
    assert_eq!(balance.reserved, Amounts::none(), "nothing is left set aside");
    balance.settled
}

#[tokio::test]
async fn a_run_ends_at_a_model_call_when_the_money_is_used_up_and_every_call_is_answered() {
    let (model, budget) = (ScriptedModel::new(calls_look(9)), money(500));
    let end = finished(agent(&model, &budget).build().expect("builds").run("go").await);
    assert_eq!((end.reason, model.calls()), (ExitReason::Budget, 3));
    assert_eq!(results(&end.history).len(), 3, "tools still ran");
    assert_eq!(used(&budget).await.cost, 450);
}

#[tokio::test]
async fn a_run_draws_on_what_its_request_brings_beside_the_agents_budget() {
    let (model, asker) = (ScriptedModel::new(calls_look(9)), money(500));
    // Without its own prices, the agent's budget uses those of the added budget.
    let budget = Budget::new(Caps::default().model_calls(9));
    let agent = agent(&model, &budget).build().expect("builds");
    let end = finished(agent.start(RunRequest::user("go").budget(asker.clone())).await);
    assert_eq!((end.reason, model.calls()), (ExitReason::Budget, 3));
    assert_eq!((used(&asker).await.cost, used(&budget).await.model_calls), (450, 3));
    let other = finished(agent.start(RunRequest::user("go").caps(Caps::default().model_calls(1))).await);
    assert_eq!(other.reason, ExitReason::Budget, "of the run's own cap");
    assert_eq!((used(&asker).await.cost, used(&budget).await.model_calls), (450, 4));
}

#[tokio::test]
async fn a_tool_over_the_cap_on_tool_calls_is_told_so_and_the_run_goes_on() {
    let turns = calls_look(2).chain([Turn::text("done")]);
    let (model, budget) = (ScriptedModel::new(turns), Budget::new(Caps::default().tool_calls(1)));
    let end = finished(agent(&model, &budget).build().expect("builds").run("go").await);
    assert_eq!((end.reason, end.answer.as_str()), (ExitReason::Text, "done"));
    let told = &results(&end.history)[1];
    assert!(told.2 && told.1.contains("2 tool calls would pass the cap of 1"), "{told:?}");
}

#[tokio::test]
async fn an_unknown_model_fails_a_run_with_a_cap_on_money() {
    let model = ScriptedModel::new([]).with_info(ModelInfo::new("nobody's"));
    let e = agent(&model, &money(500)).build().expect("builds").run("go").await.expect_err("no price");
    assert_eq!((e.kind(), model.calls()), (ErrorKind::Config, 0));
    assert!(e.message().contains("model 'nobody's' has no price"), "{e}");
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_attempt_used_counts_as_reserved_unless_the_provider_refused_it() {
    for (kind, spent) in [(ErrorKind::Truncated, 1_000), (ErrorKind::RateLimited, 0)] {
        let fails = Turn::error(move || Error::new(kind, "no").with_retry(Retry::Temporary(None)));
        let model = ScriptedModel::new([fails, Turn::text("done").usage(Usage::new(100, 50))]);
        let budget = Budget::builder().caps(Caps::default().cost(1 << 20)).prices(Prices).build().expect("builds");
        let params = agent_core::ModelParams::default().max_tokens(1_000);
        let agent = agent(&model, &budget).params(params).model_layer(RetryLayer::new()).build().expect("builds");
        let end = finished(agent.run("go").await);
        let used = used(&budget).await;
        let unknown = used.cost - 150;
        assert!(if spent == 0 { unknown == 0 } else { unknown > spent }, "{kind}: {unknown}");
        assert_eq!((used.model_calls, end.usage.calls), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_counts_as_reserved_and_the_checkpoint_knows_it() {
    let model = ScriptedModel::new([Turn::text("a b c").delay(ms(1_000))]);
    let budget = money(5_000);
    let run = agent(&model, &budget).build().expect("builds").start(RunRequest::user("go"));
    let handle = run.handle();
    let cancel = async {
        tokio::time::sleep(ms(1_500)).await;
        handle.cancel();
    };
    let (end, ()) = tokio::join!(run, cancel);
    let (how, checkpoint) = stopped(end);
    let spent = used(&budget).await;
    assert_eq!((how, checkpoint.spent), ("cancelled", spent));
    assert_eq!(spent.cost, 5_000, "the answer was allowed to cost all of it");
}

#[tokio::test]
async fn a_run_that_goes_on_elsewhere_has_used_what_it_had_used() {
    let caps = Caps::default().cost(400);
    let build = |model: &ScriptedModel, journal: &MemoryJournal| {
        let budget = Budget::builder().window(Window::Run, caps).prices(Prices).build().expect("builds");
        let pauses = tool("look", async |req| {
            if req.cx.step() == 2 {
                req.ask::<Value>("may_i", Value::Null)?;
            }
            Ok(agent_core::ToolOutput::text("ok"))
        });
        Agent::builder("a", model.clone()).tool(pauses).budget(budget).store(journal.clone()).build().expect("builds")
    };
    let journal = MemoryJournal::default();
    let (first, second) = (ScriptedModel::new(calls_look(2)), ScriptedModel::new(calls_look(3)));
    let (_, checkpoint) = stopped(build(&first, &journal).start(RunRequest::user("go").session("s")).await);
    assert_eq!(checkpoint.spent.cost, 300);
    let recovered = build(&second, &journal).unfinished("s").await.expect("reads").expect("unfinished");
    let of_model_calls = |a: Amounts| (a.tokens, a.cost, a.model_calls);
    assert_eq!(of_model_calls(recovered.spent), of_model_calls(checkpoint.spent));
    assert_eq!(recovered.used().cost, 300);
    let answers = [(checkpoint.questions[0].id.clone(), json!("yes"))];
    let end = finished(build(&second, &journal).start(RunRequest::recover("s", answers)).await);
    assert_eq!((end.reason, second.calls()), (ExitReason::Budget, 0), "100 are left, and a call wants more");
}

fn delegates(id: &str) -> Turn {
    Turn::call(id, "delegate", json!({"agent": "helper", "message": "go"})).usage(Usage::new(100, 50))
}

#[tokio::test]
async fn a_sub_agent_uses_no_more_than_its_share_and_its_caller_goes_on_with_the_rest() {
    let helper = ScriptedModel::new(calls_look(9));
    let boss = ScriptedModel::new([delegates("d"), Turn::text("done").usage(Usage::new(100, 50))]);
    let budget = money(100_000);
    let below = Agent::builder("helper", helper.clone()).tool(gives("look", json!("ok"))).build().expect("builds");
    let share = agent_core::SubAgent::new("helper", "Helps.", below).with_caps(Caps::default().cost(500));
    let agent = Agent::builder("boss", boss).middleware(Delegation::new().agent(share)).budget(budget.clone());
    let end = finished(agent.build().expect("builds").run("go").await);
    assert_eq!((end.answer.as_str(), helper.calls()), ("done", 3));
    assert!(results(&end.history)[0].1.contains("used up its budget"), "{:?}", results(&end.history));
    assert_eq!(used(&budget).await.cost, 5 * 150);
}

#[tokio::test]
async fn depth_and_fan_out_have_caps_and_the_model_is_told() {
    for (caps, reason) in [
        (Caps::default().depth(0), "the depth of agents under agents is 0"),
        (Caps::default().fan_out(1), "the sub-agents of one run is 1"),
    ] {
        let helper = ScriptedModel::new([Turn::text("x")]);
        let boss = ScriptedModel::new([delegates("d1"), delegates("d2"), Turn::text("done")]);
        let below = Agent::builder("helper", helper.clone()).build().expect("builds");
        let agent = Agent::builder("boss", boss).middleware(Delegation::new().to("helper", "Helps.", below));
        let request = RunRequest::user("go").caps(caps);
        let end = finished(agent.build().expect("builds").start(request).await);
        assert_eq!(end.answer, "done");
        assert!(results(&end.history)[1].1.contains(reason), "{:?}", results(&end.history));
    }
}

#[tokio::test(start_paused = true)]
async fn wall_time_is_a_budget_of_the_run_and_is_not_given_again_when_it_goes_on() {
    let slow = |text: &str| Turn::text(text).delay(ms(3_000));
    let build = |model: ScriptedModel| Agent::builder("a", model).build().expect("builds");
    let request = || RunRequest::user("go").caps(Caps::default().wall_time(Duration::from_secs(5)));
    let end = finished(build(ScriptedModel::new([slow("a b c")])).start(request()).await);
    assert_eq!((end.reason, end.answer.as_str()), (ExitReason::Budget, ""));

    let first = ScriptedModel::new([Turn::call("c", "look", json!({})).delay(ms(1_000))]);
    let pause = tool("look", async |req| {
        req.cx.pause();
        Ok(agent_core::ToolOutput::text("ok"))
    });
    let agent = Agent::builder("a", first).tool(pause).build().expect("builds");
    let (how, checkpoint) = stopped(agent.start(request()).await);
    // The system's clock is not paused and may be some milliseconds ahead where the run begins.
    let seconds = (checkpoint.elapsed_ms + 500) / 1_000;
    assert_eq!((how, seconds), ("paused", 3), "an id, the arguments and an end");
    tokio::time::sleep(Duration::from_secs(100)).await;
    let request = RunRequest::resume(carried_over(&checkpoint), [])
        .caps(Caps::default().wall_time(Duration::from_secs(5)))
        .allow_changed_agent();
    let end = finished(build(ScriptedModel::new([slow("never")])).start(request).await);
    assert_eq!(end.reason, ExitReason::Budget, "two seconds were left");
}

/// A model whose answers may be long.
fn verbose(turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    let mut info = ModelInfo::new("verbose");
    info.max_output = Some(64_000);
    ScriptedModel::new(turns).with_info(info)
}

/// Runs for at most an hour of the paused clock, under a budget of so many tokens.
async fn routed(model: ModelRouter, tokens: u64) -> agent_core::Finished {
    let agent = Agent::builder("a", model).budget(Budget::new(Caps::default().tokens(tokens)));
    let agent = agent.build().expect("builds");
    let run = tokio::time::timeout(Duration::from_secs(3_600), agent.run("go"));
    finished(run.await.expect("the run does not hang"))
}

#[tokio::test(start_paused = true)]
async fn a_model_that_asks_another_one_takes_what_is_left_beside_its_own_reservation() {
    let small = ScriptedModel::new([Turn::text("42")]);
    let classifier = verbose([Turn::text("small")]);
    let model = ModelRouter::builder(verbose([])).choice("small", small.clone(), "sums");
    let end = routed(model.classify_with(classifier.clone()).build().expect("builds"), 100_000).await;
    assert_eq!((end.answer.as_str(), classifier.calls(), small.calls()), ("42", 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_router_goes_by_its_rules_when_the_budget_has_no_room_for_the_classifier() {
    let large = verbose([Turn::text("42")]);
    let (small, classifier) = (ScriptedModel::new([]), ScriptedModel::new([]));
    let model = ModelRouter::builder(large.clone()).choice("small", small, "sums").classify_with(classifier);
    let end = routed(model.build().expect("builds"), 10_000).await;
    assert_eq!((end.answer.as_str(), large.calls()), ("42", 1));
}

#[tokio::test(start_paused = true)]
async fn routers_that_share_a_budget_do_not_wait_for_each_other() {
    let budget = Budget::new(Caps::default().tokens(200_000));
    let build = |name| {
        let classifier = verbose([Turn::text("small").delay(ms(10))]);
        let small = ScriptedModel::new([Turn::text("42")]);
        let model = ModelRouter::builder(verbose([Turn::text("42")])).choice("small", small, "sums");
        let model = model.classify_with(classifier).build().expect("builds");
        Agent::builder(name, model).budget(budget.clone()).build().expect("builds")
    };
    let (a, b, c) = (build("a"), build("b"), build("c"));
    let all = async { tokio::join!(a.run("go"), b.run("go"), c.run("go")) };
    let (a, b, c) = tokio::time::timeout(Duration::from_secs(3_600), all).await.expect("no run hangs");
    for end in [a, b, c] {
        assert_eq!(finished(end).answer, "42");
    }
    used(&budget).await;
}

/// A ledger that cannot be written for a while.
struct Failing(MemoryLedger, Arc<AtomicBool>);

#[async_trait]
impl Ledger for Failing {
    async fn balance(&self, account: &str) -> Result<Balance> {
        self.0.balance(account).await
    }

    async fn reserve(&self, account: &str, caps: &Caps, wanted: Amounts) -> Result<Option<u64>> {
        self.0.reserve(account, caps, wanted).await
    }

    fn settle(&self, account: &str, receipt: u64, used: Amounts) -> BoxFuture<'static, Result<()>> {
        match self.1.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(Error::new(ErrorKind::Store, "the ledger is away")) }),
            false => self.0.settle(account, receipt, used),
        }
    }

    fn forget(&self, prefix: &str, oldest: &str) {
        self.0.forget(prefix, oldest);
    }
}

#[tokio::test]
async fn an_answer_that_was_paid_for_is_not_lost_with_the_ledger() {
    let fails = Arc::new(AtomicBool::new(true));
    let budget = Budget::builder().ledger(Failing(MemoryLedger::new(), fails.clone()));
    let budget = budget.caps(Caps::default().model_calls(100)).build().expect("builds");
    let model = ScriptedModel::new([Turn::text("42")]);
    let agent = Agent::builder("a", model.clone()).budget(budget).store(MemoryJournal::default());
    let agent = agent.build().expect("builds");
    let e = agent.start(RunRequest::user("go").session("s")).await.expect_err("the ledger is away");
    assert_eq!(e.kind(), ErrorKind::Store);
    fails.store(false, Ordering::SeqCst);
    let end = finished(agent.start(RunRequest::recover("s", [] as [(String, Value); 0])).await);
    assert_eq!((end.answer.as_str(), model.calls()), ("42", 1));
}

#[tokio::test]
async fn a_model_that_reports_no_usage_is_counted_and_does_not_escape_a_budget() {
    let watch = crate::common::Watch::default();
    let silent = |text: &str| Turn::text(text).usage(Usage::default());
    let model = ScriptedModel::new((0..6).map(|_| silent("words and more words")));
    let budget = Budget::new(Caps::default().tokens(20_000));
    let agent = agent(&model, &budget).middleware(watch.clone()).store(MemoryJournal::default());
    let agent = agent.build().expect("builds");
    let mut reasons = Vec::new();
    for _ in 0..6 {
        let end = finished(agent.start(RunRequest::user("x".repeat(4_000)).session("s")).await);
        reasons.push((end.reason == ExitReason::Budget, end.usage.calls));
    }
    assert_eq!(reasons[0], (false, 1), "the executor counts the call");
    assert_eq!(reasons[5], (true, 0), "{reasons:?}");
    let used = used(&budget).await;
    assert!(used.tokens > 10_000 && used.tokens <= 20_000, "{used:?}");
    let told = watch.warnings().into_iter().filter(|warning| warning.contains("no usage"));
    assert_eq!(told.count(), model.calls(), "once a run");
}

#[tokio::test]
async fn a_call_counts_though_nothing_is_limited_and_the_model_reports_nothing() {
    let model = ScriptedModel::new([Turn::text("done").usage(Usage::default())]);
    let end = finished(Agent::builder("a", model).build().expect("builds").run("go").await);
    assert_eq!((end.usage.calls, end.usage.total()), (1, 0), "no tokens are made up where no budget needs them");
}
