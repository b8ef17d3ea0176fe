//! Failing tools: retries, and rewritten errors.

use crate::common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Effect, Error, ErrorKind, Event, EventKind, EventSink, Middleware, Result, Retry, ToolOutput,
    middleware::Middlewares,
};
use agent_middleware::{ToolErrors, ToolRetry, tools::ToolRetryConfig};
use common::{alone, call, root, tool_stack};
use serde_json::json;
use tower::ServiceExt;

/// An error, and how often it occurs before the tool succeeds.
type Failing = (fn() -> Error, u32);

fn soon() -> Error {
    Error::tool("busy").with_retry(Retry::Temporary(None))
}

/// Returns the result with `list`, the number of attempts, and the elapsed time.
async fn tried(list: &Middlewares, effect: Effect, (error, times): Failing) -> (Result<ToolOutput>, u32, Duration) {
    let (run, tries) = (root(|_| {}), Arc::new(AtomicU32::new(0)));
    let count = tries.clone();
    let tool = tool_stack(list, move |_| {
        let failed = count.fetch_add(1, Ordering::SeqCst) < times;
        async move { if failed { Err(error()) } else { Ok(ToolOutput::text("done")) } }
    });
    let mut request = call(run.cx(), "c1", "f", json!({}));
    request.effect = effect;
    let began = tokio::time::Instant::now();
    let result = tool.oneshot(request).await;
    (result, tries.load(Ordering::SeqCst), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_failed_for_a_moment_is_tried_again_with_growing_delays() {
    let list = alone(ToolRetry::new());
    for effect in [Effect::Pure, Effect::Idempotent] {
        let (result, tries, took) = tried(&list, effect, (soon, 2)).await;
        assert_eq!((result.expect("at last").to_text().as_str(), tries), ("done", 3));
        assert!(took.as_secs_f64() <= 3.01, "at most a second and then two: {took:?}");
    }
    let (result, tries, _) = tried(&list, Effect::Pure, (soon, 9)).await;
    assert_eq!((result.expect("the model is told").to_text().as_str(), tries), ("busy", 3));
}

/// Records the retry events: attempt, kind and error.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(u32, ErrorKind, String)>>>);

impl EventSink for Seen {
    fn emit(&self, event: &Event) {
        if let EventKind::Retry { attempt, kind, error, .. } = &event.kind {
            self.0.lock().expect("lock").push((*attempt, *kind, error.clone()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_retry_is_an_event() {
    let (run, list, seen) = (root(|_| {}), alone(ToolRetry::new()), Seen::default());
    run.cx().attach(Arc::new(seen.clone()));
    let tool = tool_stack(&list, |_| async { Err(soon()) });
    let mut request = call(run.cx(), "c1", "f", json!({}));
    request.effect = Effect::Pure;
    drop(tool.oneshot(request).await);
    let of = |attempt| (attempt, ErrorKind::Tool, "busy".to_owned());
    assert_eq!(*seen.0.lock().expect("lock"), [of(2), of(3)]);
}

#[test]
fn delays_in_a_file_are_seconds_and_one_that_is_none_is_refused() {
    let read = |json| serde_json::from_value::<ToolRetryConfig>(json);
    assert_eq!(read(json!({"initial_delay": 0.5})).expect("half a second").initial_delay, Duration::from_millis(500));
    assert!(read(json!({"max_delay": -1})).is_err());
    assert!(read(json!({"max_delay": null})).is_err());
}

#[tokio::test(start_paused = true)]
async fn the_delay_that_the_error_asks_for_is_kept_and_never_cut_short() {
    let asks: fn() -> Error = || Error::tool("busy").with_retry(Retry::Temporary(Some(Duration::from_secs(20))));
    let (_, tries, took) = tried(&alone(ToolRetry::new()), Effect::Pure, (asks, 1)).await;
    assert!(tries == 2 && (20.0..=21.01).contains(&took.as_secs_f64()), "{tries} tries in {took:?}");
    let short = alone(ToolRetry::new().max_delay(Duration::from_secs(5)));
    let (result, tries, took) = tried(&short, Effect::Pure, (asks, 1)).await;
    let told = "busy (not tried again: it asks for a wait of 20s, and at most 5s are waited)";
    assert_eq!((result.expect("the model is told").to_text().as_str(), tries, took.as_secs()), (told, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_repeated_or_cannot_pass_is_tried_once() {
    let list = alone(ToolRetry::new());
    for effect in [Effect::Reconcilable, Effect::AtMostOnce] {
        assert_eq!(tried(&list, effect, (soon, 1)).await.1, 1, "{effect:?}");
    }
    let kinds: [fn() -> Error; 3] = [
        || Error::tool("no").with_retry(Retry::Permanent),
        || Error::tool("who knows"),
        || Error::new(ErrorKind::Store, "the disk is full").with_retry(Retry::Temporary(None)),
    ];
    for error in kinds {
        assert_eq!(tried(&list, Effect::Pure, (error, 1)).await.1, 1, "{}", error());
    }
    let eager = alone(ToolRetry::new().unknown());
    assert_eq!(tried(&eager, Effect::Pure, (kinds[1], 1)).await.1, 2);
    let others = alone(ToolRetry::new().tool("g"));
    assert_eq!(tried(&others, Effect::Pure, (soon, 1)).await.1, 1);
    assert_eq!(tried(&alone(ToolRetry::new().retries(0)), Effect::Pure, (soon, 1)).await.1, 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_put_into_words_and_what_ends_the_run_is_not() {
    let words = || ToolErrors::new(|req, e| (e.message() == "busy").then(|| format!("{} is busy.", req.call.name)));
    let both: Middlewares = Arc::new([Arc::new(words()) as Arc<dyn Middleware>, Arc::new(ToolRetry::new())]);
    let (result, tries, _) = tried(&both, Effect::Pure, (soon, 9)).await;
    let out = result.expect("in words");
    assert_eq!((out.to_text().as_str(), out.is_error(), tries), ("f is busy.", true, 3));
    let (result, ..) = tried(&alone(words()), Effect::Pure, (|| Error::tool("other"), 9)).await;
    assert_eq!(result.expect("as it is").to_text(), "other");
    let limit: fn() -> Error = || Error::new(ErrorKind::Limit, "busy");
    assert!(tried(&alone(words()), Effect::Pure, (limit, 9)).await.0.is_err());
}
