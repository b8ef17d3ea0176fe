//! Trees of agents and the layers around their model calls: usage is counted once, and limits apply
//! to the whole tree.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Budget, Caps, Error, ErrorKind, EventKind, ExitReason, Flow, Message, Model, ModelInfo, ModelParams, ModelRequest,
    ModelResponse, ModelService, Result, Retry, RunRequest, ToolOutput, Usage, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_llm::{
    Catalogue, LayeredModel, RateLimitLayer, RateLimiter, ResponseCache, RetryLayer, cache::MemoryCache, transport_fn,
};
use agent_middleware::{Delegation, before_model_fn, from_fn};
use futures::future::join_all;
use http::Response;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::common::{Watch, finished, ms, tool};

fn ask(id: &str, agent: &str, message: &str) -> (String, String, Value) {
    (id.to_owned(), "delegate".to_owned(), json!({"agent": agent, "message": message}))
}

fn asks(calls: &[(String, String, Value)]) -> Turn {
    Turn::calls(calls.iter().map(|(id, name, args)| (id.as_str(), name.as_str(), args.clone())))
}

fn built(builder: AgentBuilder) -> Agent {
    builder.build().expect("builds")
}

// --- provider requests ---

// NexAU 78
#[tokio::test]
async fn a_hook_tells_the_provider_for_which_session_it_works() {
    let body = Arc::new(Mutex::new(Value::Null));
    let seen = body.clone();
    let provider = transport_fn(move |request| {
        *seen.lock().expect("free") = serde_json::from_slice(request.body()).expect("JSON");
        let answer = r#"{"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}"#;
        async move { Ok(Response::new(answer.into())) }
    });
    let identity = before_model_fn("identity", |cx, req| {
        let params = (*req.params).clone().extra("user", cx.ids().session.as_ref());
        req.params = Arc::new(params.extra("prompt_cache_key", cx.ids().agent.as_ref()));
        Ok(Flow::Continue)
    });
    let model = agent_llm::model("openai:m").transport(provider).build().expect("builds");
    let agent = built(Agent::builder("a", model).middleware(identity));
    finished(agent.start(RunRequest::user("go").session("ada's")).await);
    let body = body.lock().expect("free").clone();
    assert_eq!((&body["user"], &body["prompt_cache_key"]), (&json!("ada's"), &json!("a")));
}

/// Returns what each provider receives about the session `id`, from a model that sends it.
async fn told(id: &str, params: ModelParams) -> Vec<Value> {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let provider = |answer: &'static str| {
        let bodies = bodies.clone();
        transport_fn(move |request: http::Request<_>| {
            bodies.lock().expect("free").push(serde_json::from_slice(request.body()).expect("JSON"));
            async move { Ok(Response::new(answer.into())) }
        })
    };
    let chat = r#"{"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}"#;
    let items = r#"{"id": "r", "object": "response", "status": "completed",
        "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}]}]}"#;
    let claude = r#"{"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hi"}], "usage": {"input_tokens": 1, "output_tokens": 1}}"#;
    let gemini =
        r#"{"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}"#;
    let other = agent_llm::model("vllm:m").base_url("http://acme.test/v1").transport(provider(chat)).tell_session();
    let models: [Arc<dyn Model>; 5] = [
        Arc::new(agent_llm::model("openai:m").transport(provider(chat)).tell_session().build().expect("builds")),
        Arc::new(other.build().expect("builds")),
        Arc::new(
            agent_llm::model("openai:m@responses").transport(provider(items)).tell_session().build().expect("builds"),
        ),
        Arc::new(agent_llm::model("anthropic:m").transport(provider(claude)).tell_session().build().expect("builds")),
        Arc::new(agent_llm::model("gemini:m").transport(provider(gemini)).tell_session().build().expect("builds")),
    ];
    for model in models {
        let agent = built(Agent::builder("a", model).params(params.clone()));
        finished(agent.start(RunRequest::user("go").session(id)).await);
    }
    std::mem::take(&mut bodies.lock().expect("free"))
}

// NexAU 78
#[tokio::test]
async fn a_model_that_tells_its_session_does_so_in_the_fields_of_its_provider() {
    let [openai, other, responses, anthropic, gemini] = &told("ada's", ModelParams::default()).await[..] else {
        panic!()
    };
    for body in [openai, responses] {
        assert_eq!((&body["safety_identifier"], &body["prompt_cache_key"]), (&json!("ada's"), &json!("ada's")));
        assert_eq!(body.get("user"), None, "which they no longer want");
    }
    assert_eq!((&other["user"], other.get("prompt_cache_key")), (&json!("ada's"), None));
    assert_eq!(anthropic["metadata"], json!({"user_id": "ada's"}));
    assert!(!gemini.to_string().contains("ada's"), "it has no field for it: {gemini}");

    let params = ModelParams::default().extra("prompt_cache_key", "mine").extra("metadata", json!({"team": 7}));
    let [openai, .., anthropic, _] = &told("ada's", params).await[..] else { panic!() };
    assert_eq!((&openai["safety_identifier"], &openai["prompt_cache_key"]), (&json!("ada's"), &json!("mine")));
    assert_eq!(anthropic["metadata"], json!({"user_id": "ada's", "team": 7}), "one is laid over the other");

    let long = "x".repeat(65);
    let names: Vec<_> = told(&long, ModelParams::default()).await.iter().map(|body| body["user"].clone()).collect();
    assert_eq!(names[1].as_str().map(str::len), Some(64), "providers refuse longer ones");
    assert_eq!(names[1], told(&long, ModelParams::default()).await[1]["user"], "and it is the same each time");
}

#[tokio::test]
async fn a_model_tells_nobody_of_its_session_unless_it_is_built_to() {
    let (answers, body) = ([says("hi")], Arc::new(Mutex::new(Value::Null)));
    let seen = body.clone();
    let transport = transport_fn(move |request: http::Request<_>| {
        *seen.lock().expect("free") = serde_json::from_slice(request.body()).expect("JSON");
        let answer = json!({"choices": [{"message": answers[0], "finish_reason": "stop"}]}).to_string();
        async move { Ok(Response::new(answer.into())) }
    });
    let model = agent_llm::model("openai:m").transport(transport).build().expect("builds");
    finished(built(Agent::builder("a", model)).start(RunRequest::user("go").session("ada's")).await);
    let body = body.lock().expect("free").clone();
    assert!(!body.to_string().contains("ada's"), "{body}");
}

#[tokio::test]
async fn what_a_request_says_of_the_answer_is_laid_over_what_the_agent_says_and_holds_for_that_run_alone() {
    let model = ScriptedModel::new([Turn::text("1"), Turn::text("2")]);
    let usual = ModelParams::default().temperature(0.2).max_tokens(500);
    let usual = usual.extra("metadata", json!({"team": 7, "tier": "low"})).extra("user", "ada");
    let agent = built(Agent::builder("a", model.clone()).params(usual.clone()));
    let own = ModelParams::default().temperature(0.9).extra("metadata", json!({"tier": "high"}));
    finished(agent.start(RunRequest::user("go").params(own)).await);
    finished(agent.run("go").await);
    let expected = usual.clone().temperature(0.9).extra("metadata", json!({"team": 7, "tier": "high"}));
    let asked = model.requests();
    assert_eq!((&asked[0].params, &asked[1].params), (&expected, &usual));
}

// --- usage ---

/// An OpenAI model in whose responses 4 of 10 prompt tokens were cached and 3 of 5 completion
/// tokens were reasoning.
fn openai(model: &str, answers: impl IntoIterator<Item = Value>) -> LayeredModel {
    let (asked, answers) = (Arc::new(AtomicU32::new(0)), answers.into_iter().collect::<Vec<_>>());
    let name = model.to_owned();
    let transport = transport_fn(move |_| {
        let message = answers[asked.fetch_add(1, Ordering::Relaxed) as usize].clone();
        let body = json!({
            "model": name,
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 3},
            },
        });
        async move { Ok(Response::new(body.to_string().into())) }
    });
    agent_llm::model(format!("openai:{model}")).transport(transport).build().expect("a model")
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn delegates(agent: &str) -> Value {
    let arguments = json!({"agent": agent, "message": "go"}).to_string();
    let call = json!({"id": "c", "type": "function", "function": {"name": "delegate", "arguments": arguments}});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

#[tokio::test]
async fn no_token_of_a_run_or_a_tree_is_counted_twice() {
    let helper = built(Agent::builder("helper", openai("gpt-5", [says("done")])));
    let boss = Agent::builder("boss", openai("gpt-5", [delegates("helper"), says("done")]));
    let end = finished(built(boss.middleware(Delegation::new().to("helper", "Helps.", helper))).run("go").await);
    for (usage, calls) in [(end.usage, 2), (end.tree_usage, 3)] {
        let counted = (usage.input, usage.cached, usage.output, usage.reasoning, usage.calls);
        assert_eq!(counted, (6 * calls, 4 * calls, 5 * calls, 3 * calls, calls));
        assert_eq!((usage.total(), usage.prompt()), (15 * calls, 10 * calls));
        // 6 x 1.25 + 4 x 0.125 + 5 x 10 millionths of a dollar, each call rounded.
        assert_eq!(usage.whole_cost(), Some(58 * calls));
    }
}

#[tokio::test]
async fn one_call_without_a_price_makes_the_trees_cost_unknown_and_its_part_stays() {
    let helper = built(Agent::builder("helper", openai("of-our-own", [says("done")])));
    let boss = Agent::builder("boss", openai("gpt-5", [delegates("helper"), says("done")]));
    let end = finished(built(boss.middleware(Delegation::new().to("helper", "Helps.", helper))).run("go").await);
    assert_eq!((end.usage.whole_cost(), end.tree_usage.whole_cost(), end.tree_usage.cost), (Some(116), None, 116));
}

#[tokio::test]
async fn a_call_that_is_made_again_counts_if_it_reported_what_it_used() {
    // The layer rejects the first answer; it is still paid for.
    let model = ScriptedModel::new([
        Turn::text("bad").usage(Usage::new(100, 10)),
        Turn::text("good").usage(Usage::new(100, 20)),
    ]);
    let once_more = from_fn(async |req: ModelRequest, next: ModelService| {
        let first = next.clone().oneshot(req.clone()).await?;
        if first.message.text() == "bad" { next.oneshot(req).await } else { Ok(first) }
    });
    let end = finished(built(Agent::builder("a", model).model_layer(once_more)).run("go").await);
    assert_eq!((end.answer.as_str(), end.steps), ("good", 1));
    assert_eq!((end.usage.calls, end.usage.input, end.usage.output), (2, 200, 30));
    assert_eq!(end.tree_usage, end.usage);
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_reports_nothing_and_counts_for_nothing() {
    let overloaded = || Error::new(ErrorKind::Overloaded, "later").with_retry(Retry::Temporary(None));
    let model = ScriptedModel::new([Turn::error(overloaded), Turn::text("fine").usage(Usage::new(100, 20))]);
    let end = finished(built(Agent::builder("a", model).model_layer(RetryLayer::new())).run("go").await);
    assert_eq!((end.usage, end.tree_usage), (Usage::new(100, 20), Usage::new(100, 20)));
}

#[tokio::test]
async fn a_cached_answer_counts_for_nothing_in_run_and_tree() {
    let cache = ResponseCache::new(MemoryCache::new());
    let model = |turns: Vec<Turn>| ScriptedModel::new(turns);
    let helper_model = model(vec![Turn::text("found").usage(Usage::new(40, 4))]);
    let calls = [ask("1", "helper", "look"), ask("2", "helper", "look")];
    let boss_model = model(vec![asks(&calls).usage(Usage::new(7, 7)), Turn::text("done").usage(Usage::new(9, 9))]);
    let layer = |model: &ScriptedModel, name: &str| cache.layer(model.info().with_provider(name));
    let helper = built(Agent::builder("helper", helper_model.clone()).model_layer(layer(&helper_model, "helper")));
    let boss = Agent::builder("boss", boss_model.clone()).model_layer(layer(&boss_model, "boss"));
    let boss = built(boss.middleware(Delegation::new().to("helper", "Helps.", helper)).tool_concurrency(1));
    let first = finished(boss.run("go").await);
    assert_eq!((first.usage.calls, first.usage.input), (2, 16));
    assert_eq!((first.tree_usage.calls, first.tree_usage.input), (3, 56), "the helper's second call was the same");
    helper_model.assert_finished();
    let again = finished(boss.run("go").await);
    assert_eq!((again.answer, again.steps), (first.answer, 2));
    assert_eq!((again.usage, again.tree_usage), (Usage::default(), Usage::default()));
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.saved.calls, stats.saved.input), (5, 3, 5, 40 + 16 + 80));
}

#[tokio::test]
async fn what_a_failed_sub_agent_used_counts_in_the_tree() {
    let broken = || Error::new(ErrorKind::Provider, "broken");
    let helper_model =
        ScriptedModel::new([Turn::call("k", "noop", json!({})).usage(Usage::new(30, 3)), Turn::error(broken)]);
    let noop = tool("noop", async |_| Ok(agent_core::ToolOutput::text("ok")));
    let helper = built(Agent::builder("helper", helper_model).tool(noop));
    let model = ScriptedModel::new([
        asks(&[ask("1", "helper", "go")]).usage(Usage::new(1, 1)),
        Turn::text("it failed").usage(Usage::new(2, 2)),
    ]);
    let boss = Agent::builder("boss", model).middleware(Delegation::new().to("helper", "Helps.", helper));
    let end = finished(built(boss).run("go").await);
    assert_eq!((end.usage.input, end.tree_usage.input, end.tree_usage.calls), (3, 33, 3));
}

/// An agent that calls all its helpers concurrently and ends, with the usage of each of its two
/// calls.
#[derive(Clone, Debug)]
struct Tree {
    used: [Usage; 2],
    below: Vec<Self>,
}

impl Tree {
    fn own(&self) -> Usage {
        let mut sum = self.used[1];
        if !self.below.is_empty() {
            sum += self.used[0];
        }
        sum
    }

    fn total(&self) -> Usage {
        self.below.iter().map(Self::total).fold(self.own(), |mut sum, below| {
            sum += below;
            sum
        })
    }

    fn runs(&self) -> usize {
        1 + self.below.iter().map(Self::runs).sum::<usize>()
    }

    fn agent(&self, watch: Option<&Watch>) -> Agent {
        let keys: Vec<_> = (0..self.below.len()).map(|n| format!("h{n}")).collect();
        let calls: Vec<_> = keys.iter().map(|key| ask(key, key, "go")).collect();
        let first = (!calls.is_empty()).then(|| asks(&calls).usage(self.used[0]));
        let turns = first.into_iter().chain([Turn::text("done").usage(self.used[1])]);
        let mut builder = Agent::builder("agent", ScriptedModel::new(turns));
        if !keys.is_empty() {
            let helpers = keys.into_iter().zip(&self.below);
            let delegation =
                helpers.fold(Delegation::new(), |all, (key, below)| all.to(key, "Helps.", below.agent(None)));
            builder = builder.middleware(delegation);
        }
        built(watch.into_iter().fold(builder, |builder, watch| builder.middleware(watch.clone())))
    }
}

fn usage() -> impl Strategy<Value = Usage> {
    prop::array::uniform6(0_u64..1_000).prop_map(|[input, cached, write, output, reasoning, cost]| {
        let mut usage = Usage::new(input, output);
        (usage.cached, usage.cache_write, usage.reasoning) = (cached, write, reasoning.min(output));
        usage.with_cost((cost > 300).then_some(cost))
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let node =
        |below: Vec<Tree>| (usage(), usage()).prop_map(move |(a, b)| Tree { used: [a, b], below: below.clone() });
    let leaf = (usage(), usage()).prop_map(|(a, b)| Tree { used: [a, b], below: Vec::new() });
    leaf.prop_recursive(3, 12, 3, move |below| prop::collection::vec(below, 0..3).prop_flat_map(node))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_call_of_any_tree_is_in_one_runs_usage_and_in_all_totals_above(tree in tree()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let watch = Watch::default();
            let end = finished(tree.agent(Some(&watch)).run("go").await);
            assert_eq!((end.usage, end.tree_usage), (tree.own(), tree.total()));
            let each = watch.pick(|kind| match kind {
                EventKind::RunEnded { usage, .. } => Some(usage),
                _ => None,
            });
            let mut sum = Usage::default();
            each.iter().for_each(|own| sum += *own);
            assert_eq!((each.len(), sum), (tree.runs(), tree.total()), "each run reports its own");
        });
    }
}

// --- money ---

#[tokio::test]
async fn a_budget_of_money_lets_nothing_begin_once_it_is_used_up() {
    let budget = Budget::builder().caps(Caps::default().cost(400)).prices(Catalogue::builtin());
    let budget = budget.build().expect("builds");
    let noop = tool("delegate", async |_| Ok(agent_core::ToolOutput::text("ok")));
    let agent = Agent::builder("a", openai("gpt-5", (0..9).map(|_| delegates("x")))).tool(noop).budget(budget.clone());
    let end = finished(built(agent).run("go").await);
    let spent = budget.balance().await.expect("in memory").settled;
    assert_eq!((end.reason, spent.model_calls), (ExitReason::Budget, u64::from(end.steps)));
    assert!(end.steps > 1 && spent.cost == 58 * spent.model_calls && spent.cost <= 400, "{spent:?}");
}

// --- rate limits ---

/// Accepts ten calls per minute, and refuses others with or without a retry delay.
#[derive(Clone, Default)]
struct TenPerMinute {
    taken: Arc<Mutex<Vec<(Instant, u32)>>>,
    refused: Arc<AtomicU32>,
    says_delay: bool,
}

impl TenPerMinute {
    fn utilisation(&self) -> f64 {
        let taken = self.taken.lock().expect("lock");
        let took = taken[taken.len() - 1].0 - taken[0].0;
        (Duration::from_secs(60) * ((taken.len() - 1) as u32 / 10)).div_duration_f64(took)
    }
}

#[async_trait]
impl Model for TenPerMinute {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("ten per minute")
    }

    /// The boss calls fifty helpers concurrently; each of them calls a tool and ends.
    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        sleep(ms(50)).await;
        let now = Instant::now();
        let wait = {
            let mut taken = self.taken.lock().expect("lock");
            let oldest = taken.len().checked_sub(10).map(|at| taken[at].0);
            let wait = oldest.and_then(|at| Duration::from_secs(60).checked_sub(now - at)).filter(|d| !d.is_zero());
            if wait.is_none() {
                taken.push((now, req.cx.ids().depth));
            }
            wait
        };
        if let Some(wait) = wait {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let delay = self.says_delay.then(|| Duration::from_secs(wait.as_secs() + 1));
            return Err(Error::new(ErrorKind::RateLimited, "slow down").with_retry(Retry::Temporary(delay)));
        }
        sleep(ms(1_500)).await;
        let begins = matches!(req.messages.last(), Some(Message::User(_)));
        let calls = match (begins, req.cx.ids().depth) {
            (true, 0) => (0..50).map(|n| ask(&format!("c{n}"), "helper", &format!("task {n}"))).collect(),
            (true, _) => vec![("k".to_owned(), "noop".to_owned(), json!({}))],
            (false, _) => return Ok(ModelResponse::new("done").with_usage(Usage::new(100, 10))),
        };
        let calls = calls.iter().map(|(id, name, args)| agent_core::Block::tool_call(&**id, &**name, args.to_string()));
        let message = agent_core::AssistantMessage::new(calls.collect());
        Ok(ModelResponse::new(message).with_usage(Usage::new(100, 10)))
    }
}

/// Runs a boss with fifty helpers, each with its own layer.
async fn fifty_helpers(model: &TenPerMinute, layer: impl Fn() -> RateLimitLayer) -> agent_core::Finished {
    let noop = tool("noop", async |_| Ok(agent_core::ToolOutput::text("ok")));
    let helper = built(Agent::builder("helper", model.clone()).model_layer(layer()).tool(noop));
    let boss = Agent::builder("boss", model.clone()).model_layer(layer()).tool_concurrency(64);
    finished(built(boss.middleware(Delegation::new().to("helper", "Helps.", helper))).run("go").await)
}

#[tokio::test(start_paused = true)]
async fn fifty_sub_agents_share_one_allowance_and_none_is_refused_for_good() {
    let known = RateLimiter::builder("acme").requests_per_minute(10).wait_forever().build().expect("a limiter");
    let unknown = || RateLimiter::builder("acme").wait_forever().build().expect("a limiter");
    for (says_delay, limiter, most_refused) in [(true, known, 0), (true, unknown(), 60), (false, unknown(), 60)] {
        let model = TenPerMinute { says_delay, ..TenPerMinute::default() };
        let end = fifty_helpers(&model, || limiter.layer()).await;
        assert_eq!((end.answer.as_str(), end.tree_usage.calls, end.usage.calls), ("done", 102, 2));
        assert!(model.utilisation() > 0.9, "{}", model.utilisation());
        let refused = model.refused.load(Ordering::Relaxed);
        assert!(refused <= most_refused, "{refused} refusals, of which forty are of the first fifty calls");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_waits_for_goes_before_the_work_of_sub_agents() {
    let limiter = RateLimiter::builder("acme").requests_per_minute(10).wait_forever().build().expect("a limiter");
    let model = TenPerMinute { says_delay: true, ..TenPerMinute::default() };
    let layer = || limiter.layer().priority_by(|req| if req.cx.ids().depth == 0 { -10 } else { 0 });
    let person = async {
        sleep(Duration::from_secs(30)).await;
        let one = built(Agent::builder("person", ScriptedModel::new([Turn::text("at once")])).model_layer(layer()));
        let began = Instant::now();
        finished(one.run("quick question").await);
        began.elapsed()
    };
    let (_, waited) = tokio::join!(fifty_helpers(&model, layer), person);
    assert!(waited < Duration::from_secs(35), "it waited for {waited:?}, and not behind ninety calls");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_tree_leaves_nothing_in_the_queue() {
    let limiter = RateLimiter::builder("acme").requests_per_minute(10).build().expect("a limiter");
    let model = TenPerMinute::default();
    let noop = tool("noop", async |_| Ok(agent_core::ToolOutput::text("ok")));
    let helper = built(Agent::builder("helper", model.clone()).model_layer(limiter.layer()).tool(noop));
    let boss = Agent::builder("boss", model.clone()).model_layer(limiter.layer()).tool_concurrency(64);
    let boss = built(boss.middleware(Delegation::new().to("helper", "Helps.", helper)));
    let run = boss.start(agent_core::RunRequest::user("go"));
    let handle = run.handle();
    let cancel = async {
        sleep(Duration::from_secs(10)).await;
        assert!(limiter.status().waiting > 0, "{:?}", limiter.status());
        handle.cancel();
    };
    let (end, ()) = tokio::join!(run, cancel);
    assert_eq!((end.expect("no failure").as_str(), limiter.status().waiting), ("cancelled", 0));
    let more = join_all((0..3).map(|_| boss.run("go")));
    assert!(tokio::time::timeout(Duration::from_secs(3_600), more).await.is_ok(), "the limiter goes on");
}

// --- the model of a call ---

#[tokio::test]
async fn a_hook_chooses_the_model_of_a_call_and_the_journal_and_the_usage_are_those_of_that_model() {
    let large = ScriptedModel::new([Turn::call("c", "look", json!({}))]).with_info(ModelInfo::new("large"));
    let small = ScriptedModel::new([Turn::error(|| Error::new(ErrorKind::Overloaded, "busy")), Turn::text("done")]);
    let small = small.with_info(ModelInfo::new("small").with_context_window(1000));
    let chosen: Arc<dyn Model> = Arc::new(small.clone());
    let names = Arc::new(Mutex::new(Vec::<Option<String>>::new()));
    let seen = names.clone();
    let route = before_model_fn("route", move |cx, req| {
        if cx.step() > 1 {
            req.use_model(chosen.clone());
        }
        seen.lock().expect("free").push(req.model.as_ref().map(|info| info.name.clone()));
        Ok(Flow::Continue)
    });
    let look = tool("look", async |_| Ok(ToolOutput::text("seen")));
    let agent =
        built(Agent::builder("routed", large.clone()).tool(look).middleware(route).model_layer(RetryLayer::new()));
    let end = finished(agent.run("go").await);
    assert_eq!((end.answer.as_str(), large.calls(), small.calls()), ("done", 1, 2), "a retry keeps the choice");
    assert_eq!(*names.lock().expect("free"), [Some("large".to_owned()), Some("small".to_owned())]);
}
