//! Many callers of a provider with a low rate limit.

use crate::common;
mod provider;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    BoxFuture, Chunk, Error, ErrorKind, Event, EventKind, Model, ModelParams, ModelRequest, ModelResponse,
    ModelService, Result, Retry, Usage, budget::MemoryLedger, engine::RunDriver,
};
use agent_llm::{
    RateLimitLayer, RateLimiter, RetryLayer,
    limit::{RATE_LIMIT_EVENT, RateLimiterBuilder},
};
use futures::future::join_all;
use proptest::prelude::*;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use tower::{Layer, ServiceExt, limit::GlobalConcurrencyLimitLayer, service_fn};

use self::{
    common::Answer,
    provider::{MINUTE, Minute, Provider, caller},
};

fn limiter(rules: impl FnOnce(RateLimiterBuilder) -> RateLimiterBuilder) -> RateLimiter {
    rules(RateLimiter::builder("acme")).build().expect("a limiter")
}

fn stack(layer: &RateLimitLayer, provider: &Provider) -> ModelService {
    ModelService::new(layer.layer(provider.service()))
}

/// A call by `who`, with a run that lives as long.
fn call(stack: &ModelService, who: &str) -> BoxFuture<'static, Result<ModelResponse>> {
    let ((run, request), stack) = (caller(who), stack.clone());
    Box::pin(async move {
        let _run = run;
        stack.oneshot(request).await
    })
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn too_fast(delay: u64) -> Error {
    Error::new(ErrorKind::RateLimited, "slow down").with_retry(Retry::Temporary(Some(seconds(delay))))
}

/// A model that answers with the result of `answer` for the number of the call, from 1.
fn answers(answer: impl Fn(usize) -> Result<ModelResponse> + Send + Sync + 'static) -> ModelService {
    let (answer, calls) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    ModelService::new(service_fn(move |_: ModelRequest| {
        let (answer, call) = (answer.clone(), calls.fetch_add(1, Ordering::Relaxed) + 1);
        async move { answer(call) }
    }))
}

fn done() -> ModelResponse {
    ModelResponse::new("done").with_usage(Usage::new(90, 10))
}

/// Records the values of the limiter's events in a run.
fn reports(run: &RunDriver) -> Arc<Mutex<Vec<Value>>> {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let sink = reports.clone();
    run.cx().attach(Arc::new(move |event: &Event| {
        if let EventKind::Custom { name, value } = &event.kind
            && name == RATE_LIMIT_EVENT
        {
            sink.lock().expect("lock").push(value.clone());
        }
    }));
    reports
}

/// Fifty agents, each with its own layer, make four sequential calls each.
async fn fifty_agents(limiter: &RateLimiter, provider: &Provider) {
    let agents = (0..50).map(|n| {
        let stack = stack(&limiter.layer(), provider);
        async move {
            for _ in 0..4 {
                call(&stack, &format!("agent {n}")).await.expect("no refusal comes through");
            }
        }
    });
    join_all(agents).await;
    assert_eq!(provider.books().taken.len(), 200);
}

// --- the rate ---

#[tokio::test(start_paused = true)]
async fn fifty_agents_use_up_a_known_limit_and_are_never_refused() {
    for minute in [Minute::Sliding, Minute::Fixed, Minute::Bucket(10)] {
        let provider = Provider::new(10, minute);
        fifty_agents(&limiter(|l| l.requests_per_minute(10).wait_forever()), &provider).await;
        assert_eq!(provider.books().refused, 0, "{minute:?}");
        assert!(provider.utilisation() > 0.98, "{minute:?}: {}", provider.utilisation());
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_agents_use_nine_tenths_of_a_limit_that_nobody_told_them() {
    for minute in [Minute::Sliding, Minute::Fixed, Minute::Bucket(10)] {
        for provider in [Provider::new(10, minute), Provider::new(10, minute).without_delay()] {
            fifty_agents(&limiter(RateLimiterBuilder::wait_forever), &provider).await;
            assert!(provider.utilisation() > 0.9, "{minute:?}: {}", provider.utilisation());
            let refused = provider.books().refused;
            assert!(refused < 60, "{minute:?}: {refused} refusals, 40 of them of the first fifty calls");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_agents_use_nine_tenths_of_a_limit_that_is_lower_than_they_were_told() {
    for provider in [Provider::new(10, Minute::Sliding), Provider::new(10, Minute::Sliding).without_delay()] {
        let limiter = limiter(|l| l.requests_per_minute(40).wait_forever());
        fifty_agents(&limiter, &provider).await;
        assert!(provider.utilisation() > 0.9, "{}", provider.utilisation());
        let rate = limiter.status().requests_per_minute.expect("limited");
        assert!((9.0..14.0).contains(&rate), "the rate has come down to {rate}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_takes_one_at_a_time_is_never_overrun_if_that_is_known_and_soon_if_not() {
    let provider = Provider::new(10, Minute::Bucket(1));
    fifty_agents(&limiter(|l| l.requests_per_minute(10).evenly().wait_forever()), &provider).await;
    assert_eq!(provider.books().refused, 0);
    assert!(provider.utilisation() > 0.98, "{}", provider.utilisation());
    let provider = Provider::new(10, Minute::Bucket(1)).without_delay();
    fifty_agents(&limiter(RateLimiterBuilder::wait_forever), &provider).await;
    assert!(provider.utilisation() > 0.85, "{}", provider.utilisation());
    let refused = provider.books().refused;
    assert!(refused < 49 + 25, "{refused} refusals, 49 of them at once");
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_one_call_is_told_is_kept_by_all() {
    let service = answers(|call| if call == 1 { Err(too_fast(40)) } else { Ok(done()) });
    let limiter = limiter(|l| l.requests_per_minute(100));
    let stack = ModelService::new(limiter.layer().layer(service));
    let began = Instant::now();
    let first = tokio::spawn(call(&stack, "first"));
    sleep(seconds(1)).await;
    assert_eq!(limiter.status().closed_for, Some(seconds(39)));
    call(&stack, "second").await.expect("an answer");
    assert_eq!(began.elapsed().as_secs(), 41, "a turn later than the first");
    first.await.expect("no panic").expect("the refused call was made again");
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_was_cut_grows_back_while_calls_wait_for_it() {
    let service = answers(|call| if call == 20 { Err(too_fast(60)) } else { Ok(done()) });
    let limiter = limiter(|l| l.requests_per_minute(100).wait_forever());
    let stack = ModelService::new(limiter.layer().layer(service));
    join_all((0..20).map(|_| call(&stack, "a"))).await;
    let cut = limiter.status().requests_per_minute.expect("limited");
    assert!((50.0..50.2).contains(&cut), "{cut}");
    join_all((0..800).map(|_| call(&stack, "b"))).await;
    assert_eq!(limiter.status().requests_per_minute, Some(100.0));
}

// --- tokens ---

#[tokio::test(start_paused = true)]
async fn tokens_are_reserved_by_estimate_and_settled_by_usage() {
    let provider = Provider::new(1_000, Minute::Sliding).latency(seconds(10));
    let limiter = limiter(|l| l.tokens_per_minute(3_000).estimate(|_| 1_000));
    let stack = stack(&limiter.layer(), &provider);
    let (calls, began) = (join_all((0..6).map(|_| call(&stack, "a"))), Instant::now());
    let watch = async {
        sleep(seconds(5)).await;
        assert_eq!((limiter.status().tokens, limiter.status().waiting), (3_000, 3), "three thousands are reserved");
    };
    let (all, ()) = tokio::join!(calls, watch);
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(began.elapsed().as_secs(), 30, "three, then two beside what three had used, then the last");
    assert_eq!(limiter.status().tokens, 600);
}

#[tokio::test(start_paused = true)]
async fn what_the_providers_limit_leaves_out_is_not_counted() {
    let mut cached = Usage::new(10, 5);
    cached.cached = 10_000;
    let service = answers(move |_| Ok(ModelResponse::new("done").with_usage(cached)));
    let limiter = limiter(|l| l.tokens_per_minute(20_000).counted(|usage| usage.total() - usage.cached));
    let stack = ModelService::new(limiter.layer().layer(service));
    call(&stack, "a").await.expect("an answer");
    assert_eq!(limiter.status().tokens, 15);
}

#[tokio::test(start_paused = true)]
async fn the_prompt_and_the_longest_answer_are_estimated() {
    let limiter = limiter(|l| l.tokens_per_minute(10_000));
    let stack = stack(&limiter.layer(), &Provider::new(1_000, Minute::Sliding));
    let (_run, mut request) = caller("a text of 28 characters here");
    request.params = Arc::new(ModelParams::default().max_tokens(500));
    let call = tokio::spawn(stack.oneshot(request));
    sleep(seconds(1)).await;
    assert_eq!(limiter.status().tokens, 7 + 3 + 500);
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_a_minute_has_one_for_itself() {
    let provider = Provider::new(1_000, Minute::Sliding);
    let limiter = limiter(|l| l.tokens_per_minute(50).estimate(|_| 400));
    let stack = stack(&limiter.layer(), &provider);
    let began = Instant::now();
    for done in join_all((0..3).map(|_| call(&stack, "a"))).await {
        done.expect("it goes");
    }
    assert_eq!(began.elapsed().as_secs() / 60, 2);
}

// --- order ---

#[tokio::test(start_paused = true)]
async fn calls_go_in_their_order_and_urgent_ones_first() {
    let provider = Provider::new(1, Minute::Sliding);
    let limiter = limiter(|l| l.requests_per_minute(1).wait_forever());
    let (low, urgent) = (limiter.layer(), limiter.layer().priority_by(|_| -1));
    let calls = [(&low, "a"), (&low, "b"), (&low, "c"), (&urgent, "u"), (&urgent, "v")];
    join_all(calls.map(|(layer, who)| call(&stack(layer, &provider), who))).await;
    assert_eq!(provider.order(), ["a", "u", "v", "b", "c"], "the first had its turn at once");
}

#[tokio::test(start_paused = true)]
async fn a_steady_stream_of_urgent_calls_starves_nobody() {
    let provider = Provider::new(1, Minute::Sliding);
    let limiter = limiter(|l| l.requests_per_minute(1).aging(seconds(90)).wait_forever());
    let urgent = stack(&limiter.layer().priority(-2), &provider);
    let patient = call(&stack(&limiter.layer(), &provider), "patient");
    let stream = async {
        let mut calls = Vec::new();
        for _ in 0..30 {
            calls.push(tokio::spawn(call(&urgent, "urgent")));
            sleep(seconds(20)).await; // three times as many as can be admitted
        }
        join_all(calls).await;
    };
    let late = async {
        sleep(seconds(1)).await;
        patient.await
    };
    tokio::join!(stream, late).1.expect("it has its turn");
    let place = provider.order().iter().position(|who| who == "patient").expect("it went");
    assert_eq!(place, 10, "nine urgent calls came within 180 seconds after it, and one was before it");
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_keeps_its_place() {
    let provider = Provider::new(1, Minute::Sliding);
    provider.books().taken.push((Instant::now(), "somebody else".into()));
    let stack = stack(&limiter(RateLimiterBuilder::wait_forever).layer(), &provider);
    let calls = (0..5).map(|n| {
        let call = call(&stack, &n.to_string());
        async move {
            sleep(Duration::from_millis(n)).await;
            call.await
        }
    });
    join_all(calls).await;
    assert_eq!(provider.order()[1..], ["0", "1", "2", "3", "4"]);
}

// --- cancellation and timeouts ---

#[tokio::test(start_paused = true)]
async fn a_dropped_call_frees_its_place() {
    let provider = Provider::new(1, Minute::Sliding);
    let limiter = limiter(|l| l.requests_per_minute(1));
    let stack = stack(&limiter.layer(), &provider);
    call(&stack, "first").await.expect("an answer");
    let mut dropped = call(&stack, "dropped");
    assert!(timeout(seconds(1), &mut dropped).await.is_err());
    let behind = tokio::spawn(call(&stack, "behind"));
    sleep(seconds(1)).await;
    assert_eq!(limiter.status().waiting, 2);
    drop(dropped);
    assert_eq!(limiter.status().waiting, 1);
    behind.await.expect("no panic").expect("an answer");
    assert_eq!(provider.order(), ["first", "behind"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_stops_waiting() {
    let limiter = limiter(|l| l.requests_per_minute(1));
    let stack = stack(&limiter.layer(), &Provider::new(1, Minute::Sliding));
    call(&stack, "first").await.expect("an answer");
    let (run, request) = caller("second");
    let cancel = async {
        sleep(seconds(3)).await;
        run.cx().cancellation().cancel();
    };
    let (result, ()) = tokio::join!(stack.oneshot(request), cancel);
    assert_eq!((result.expect_err("cancelled").kind(), limiter.status().waiting), (ErrorKind::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_further_calls_and_says_what_to_change() {
    let limiter = limiter(|l| l.requests_per_minute(1).max_queue(2));
    let stack = stack(&limiter.layer(), &Provider::new(1, Minute::Sliding));
    let waiting: Vec<_> = (0..3).map(|_| tokio::spawn(call(&stack, "a"))).collect();
    sleep(seconds(1)).await;
    let error = call(&stack, "b").await.expect_err("refused");
    assert_eq!(
        (error.kind(), error.is_retryable(), error.context("limiter")),
        (ErrorKind::Overloaded, true, Some("acme"))
    );
    assert!(error.message().contains("max_queue"), "{error}");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_wait_too_long_fails_as_soon_as_that_is_known() {
    let service = answers(|_| Err(too_fast(3_600)));
    let stack = ModelService::new(limiter(|l| l.max_wait(seconds(120))).layer().layer(service));
    let began = Instant::now();
    for error in join_all((0..3).map(|_| call(&stack, "a"))).await.into_iter().map(|r| r.expect_err("too long")) {
        assert_eq!((error.kind(), began.elapsed().as_secs()), (ErrorKind::RateLimited, 0));
        assert_eq!((error.retry(), error.context("opens_in")), (Retry::Permanent, Some("3600")), "it was not to wait");
        assert!(error.message().contains("120s") && error.message().contains("max_wait"), "{error}");
    }
    let error = call(&stack, "later").await.expect_err("too long");
    assert!(std::error::Error::source(&error).is_none(), "it was not even sent");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_in_vain_is_not_sent_to_the_end_of_the_queue() {
    let limiter = limiter(|l| l.requests_per_minute(1).max_wait(seconds(90)));
    let provider = stack(&limiter.layer(), &Provider::new(1, Minute::Sliding));
    let stack = ModelService::new(RetryLayer::new().layer(provider));
    let began = Instant::now();
    let results = join_all((0..4).map(|_| call(&stack, "a"))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    assert!(began.elapsed() < seconds(90), "took {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_limiter_learns_what_the_prompts_of_its_model_have() {
    let service = answers(|_| Ok(ModelResponse::new("done").with_usage(Usage::new(30, 0))));
    let limiter = limiter(|l| l.tokens_per_minute(100));
    let stack = ModelService::new(limiter.layer().layer(service));
    let began = Instant::now();
    for _ in 0..3 {
        call(&stack, "a").await.expect("an answer"); // four tokens by estimate
    }
    assert_eq!((began.elapsed().as_secs(), limiter.status().tokens), (0, 90), "settled with what was reported");
    call(&stack, "a").await.expect("an answer");
    assert!(began.elapsed() >= seconds(60), "it is not taken for one of four tokens, which would fit");
}

#[tokio::test(start_paused = true)]
async fn a_call_fails_when_it_has_waited_for_the_longest_time() {
    let limiter = limiter(|l| l.requests_per_minute(1).max_wait(seconds(90)));
    let stack = stack(&limiter.layer(), &Provider::new(1, Minute::Sliding));
    let began = Instant::now();
    let results = join_all((0..4).map(|_| call(&stack, "a"))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    assert_eq!(began.elapsed().as_secs(), 62, "the third knew then that its turn would come too late");
    assert_eq!(limiter.status().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn only_refusals_for_the_rate_are_the_limiters_to_handle() {
    for (kind, retry) in [
        (ErrorKind::Overloaded, Retry::Temporary(None)),
        (ErrorKind::InvalidRequest, Retry::Permanent),
        (ErrorKind::RateLimited, Retry::Permanent),
    ] {
        let service = answers(move |_| Err(Error::new(kind, "no").with_retry(retry)));
        let limiter = limiter(|l| l.requests_per_minute(1));
        let error = call(&ModelService::new(limiter.layer().layer(service)), "a").await.expect_err("fails");
        assert_eq!((error.kind(), limiter.status().refused, limiter.status().requests), (kind, 0, 1));
    }
}

// --- combination with other layers ---

#[tokio::test(start_paused = true)]
async fn a_call_refused_in_the_middle_of_its_answer_is_tried_again_by_the_layer_that_can_take_it_back() {
    let calls = Arc::new(AtomicUsize::new(0));
    let service = service_fn(move |req: ModelRequest| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move {
            req.sink.push(Chunk::Text { index: 0, delta: "hel".into() })?;
            if call == 0 { Err(too_fast(7)) } else { Ok(done()) }
        }
    });
    let limiter = limiter(|l| l.requests_per_minute(10));
    let limited = ModelService::new(limiter.layer().layer(ModelService::new(service)));
    let (_run, mut request) = caller("a");
    let heard = common::listen(&mut request);
    ModelService::new(RetryLayer::new().layer(limited)).oneshot(request).await.expect("an answer");
    let hel = Chunk::Text { index: 0, delta: "hel".into() };
    assert_eq!(*heard.lock().expect("lock"), [hel.clone(), Chunk::Restart, hel]);
    assert_eq!(limiter.status().refused, 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_holds_no_permit_of_the_layers_inside() {
    let provider = Provider::new(1, Minute::Sliding);
    let permits = GlobalConcurrencyLimitLayer::new(1);
    let inside = ModelService::new(permits.layer(provider.service()));
    let limiter = limiter(|l| l.requests_per_minute(1));
    let limited = ModelService::new(limiter.layer().layer(inside.clone()));
    call(&limited, "first").await.expect("an answer");
    let waiting = tokio::spawn(call(&limited, "second"));
    sleep(seconds(1)).await;
    let began = Instant::now();
    let refused = call(&inside, "past the limiter").await.expect_err("the provider refuses it");
    assert_eq!((refused.kind(), began.elapsed().as_secs()), (ErrorKind::RateLimited, 0), "it had its permit at once");
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn the_delay_in_a_providers_answer_is_kept() {
    let refusal = Answer::json(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "45");
    let provider = common::Provider::new([refusal, Answer::json(200, common::hello())]);
    let model = Arc::new(agent_llm::model("openai:m").transport(provider.clone()).retries(0).build().expect("a model"));
    let service = service_fn(move |req: ModelRequest| {
        let model = model.clone();
        async move { model.call(req).await }
    });
    let limiter = limiter(|l| l.requests_per_minute(100));
    let began = Instant::now();
    call(&ModelService::new(limiter.layer().layer(ModelService::new(service))), "a").await.expect("an answer");
    assert_eq!((began.elapsed().as_secs(), provider.calls()), (45, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_long_says_so_once_and_a_refused_one_why() {
    let limiter = limiter(|l| l.requests_per_minute(1));
    let stack = stack(&limiter.layer(), &Provider::new(1, Minute::Sliding));
    call(&stack, "first").await.expect("an answer");
    let (run, request) = caller("second");
    let waiting = reports(&run);
    stack.oneshot(request).await.expect("an answer");
    let waiting = waiting.lock().expect("lock").clone();
    let [report] = &waiting[..] else { panic!("one report, not {waiting:?}") };
    assert_eq!((&report["limiter"], &report["waited"], &report["ahead"]), (&"acme".into(), &5.0.into(), &0.into()));
    assert!(report["opens_in"].as_f64().is_some_and(|s| (53.0..54.0).contains(&s)) && report["refused"].is_null());

    let service = answers(|call| if call == 1 { Err(too_fast(2)) } else { Ok(done()) });
    let (run, request) = caller("refused");
    let refused = reports(&run);
    ModelService::new(self::limiter(|l| l).layer().layer(service)).oneshot(request).await.expect("an answer");
    let refused = refused.lock().expect("lock").clone();
    assert_eq!(refused.len(), 1);
    assert_eq!((&refused[0]["opens_in"], &refused[0]["refused"]), (&2.0.into(), &"rate limited: slow down".into()));
}

#[tokio::test(start_paused = true)]
async fn processes_that_share_a_ledger_keep_within_the_limit_together_and_none_crowds_out_the_other() {
    let (ledger, provider) = (Arc::new(MemoryLedger::new()), Provider::new(1_000, Minute::Sliding));
    let process = || stack(&limiter(|l| l.requests_per_minute(4).shared(ledger.clone())).layer(), &provider);
    let (many, few) = (process(), process());
    let began = Instant::now();
    let crowd = (0..8).map(|_| call(&many, "many"));
    let others = (0..2).map(|_| call(&few, "few"));
    let all = join_all(crowd.chain(others)).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    let took = began.elapsed();
    assert!(took > MINUTE && took < 3 * MINUTE, "ten calls are more than two minutes hold: {took:?}");
    let books = provider.books();
    let few: Vec<_> = books.taken.iter().filter(|(_, who)| who == "few").map(|(at, _)| *at - began).collect();
    assert!(few[0] <= MINUTE && few.len() == 2, "{few:?}");
}

#[tokio::test(start_paused = true)]
async fn what_calls_really_used_makes_room_for_other_processes() {
    let ledger = Arc::new(MemoryLedger::new());
    let sharing = || limiter(|l| l.tokens_per_minute(100).estimate(|_| 90).shared(ledger.clone()));
    let service = || answers(|_| Ok(done().with_usage(Usage::new(5, 5))));
    let (one, two) = (sharing().layer().layer(service()), sharing().layer().layer(service()));
    let began = Instant::now();
    for stack in [one, two] {
        call(&ModelService::new(stack), "x").await.expect("an answer");
    }
    assert!(began.elapsed() < seconds(1), "{:?}", began.elapsed());
}

#[test]
fn a_limit_that_nobody_set_is_not_shared() {
    let error = RateLimiter::builder("acme").shared(MemoryLedger::new()).build().expect_err("there is none");
    assert_eq!((error.kind(), error.message().contains("set requests_per_minute")), (ErrorKind::Config, true));
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let error = RateLimiter::builder("acme").tokens_per_minute(0).build().expect_err("nothing could be sent");
    assert_eq!((error.kind(), error.message().contains("tokens_per_minute")), (ErrorKind::Config, true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Calls arrive and are dropped at random: the provider never refuses one, and in the end no
    /// permit is left.
    #[test]
    fn permits_are_conserved_under_random_cancellation(
        calls in prop::collection::vec((0_u64..120, 0_u64..200, -1_i8..2), 1..60), most in 1_u64..12,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let provider = Provider::new(most, Minute::Sliding);
            let limiter = limiter(|l| l.requests_per_minute(most).tokens_per_minute(100 * most).estimate(|_| 100));
            let calls = calls.into_iter().enumerate().map(|(n, (comes, stays, priority))| {
                let call = call(&stack(&limiter.layer().priority(priority), &provider), &n.to_string());
                async move {
                    sleep(seconds(comes)).await;
                    let _ = timeout(seconds(stays), call).await;
                }
            });
            join_all(calls).await;
            let status = limiter.status();
            assert_eq!((status.waiting, status.refused, provider.books().refused), (0, 0, 0));
            sleep(MINUTE + seconds(1)).await;
            assert_eq!((limiter.status().requests, limiter.status().tokens), (0, 0));
            let (stack, began) = (stack(&limiter.layer(), &provider), Instant::now());
            join_all((0..most).map(|_| call(&stack, "after"))).await;
            assert_eq!(began.elapsed().as_secs(), 2, "the whole allowance is there again");
        });
    }
}
