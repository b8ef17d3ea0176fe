//! Properties for every script of failures.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, EventKind, Model, Retry, model::MessageBuilder};
use agent_llm::{
    CircuitBreaker, Failover, HedgeLayer, LayeredModel, RetryLayer, ScriptedModel, Turn, failover::Sticky,
    retry::Backoff,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use tokio::time::Instant;

use super::{
    common::{ask_to_stream, listen},
    observed, secs,
};

/// Runs on a paused clock, which advances whenever all tasks wait.
fn on_paused_clock<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("starts").block_on(test)
}

const KINDS: [ErrorKind; 6] = [
    ErrorKind::RateLimited,
    ErrorKind::Overloaded,
    ErrorKind::ContextOverflow,
    ErrorKind::InvalidRequest,
    ErrorKind::Truncated,
    ErrorKind::Unexpected,
];

/// A failure: its kind, and its retry hint.
type Failure = (ErrorKind, Retry);

fn failure() -> impl Strategy<Value = Failure> {
    let delay = option::of((0u64..40).prop_map(secs));
    let retry = prop_oneof![
        4 => delay.prop_map(Retry::Temporary),
        1 => Just(Retry::Permanent),
        1 => Just(Retry::Unknown),
    ];
    (select(&KINDS[..]), retry)
}

/// Some words, then optionally a failure.
#[derive(Clone, Debug)]
struct Scripted {
    words: String,
    pause: u64,
    failure: Option<Failure>,
}

fn scripted() -> impl Strategy<Value = Scripted> {
    let words = prop_oneof![Just(""), Just("one"), Just("one two "), Just("three four five")];
    (words, 0u64..4, option::weighted(0.7, failure())).prop_map(|(words, pause, failure)| Scripted {
        words: words.into(),
        pause,
        failure,
    })
}

fn turn(scripted: &Scripted) -> Turn {
    let turn = Turn::text(scripted.words.as_str()).delay(secs(scripted.pause));
    match scripted.failure {
        Some((kind, retry)) => turn.then_fail(move || Error::new(kind, "why").with_retry(retry)),
        None => turn,
    }
}

/// A model that follows the script and then answers everything.
fn model(script: &[Scripted]) -> ScriptedModel {
    ScriptedModel::new(script.iter().map(turn).chain((0..200).map(|_| Turn::text("the end"))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_retry_makes_the_attempts_that_it_may_and_waits_as_long_as_it_must(
        failures in vec(failure(), 0..8),
        (retries, limited_retries) in (0u32..5, 0u32..5),
        part in 0.0..=1.0f64,
    ) {
        let script: Vec<_> =
            failures.iter().map(|f| Scripted { words: String::new(), pause: 0, failure: Some(*f) }).collect();
        let jittered = |retries| Backoff::new().retries(retries).jitter(part);
        let layer = RetryLayer::new()
            .retries(retries)
            .jitter(part)
            .on([ErrorKind::RateLimited], jittered(limited_retries));
        let scripted = model(&script);
        on_paused_clock(async {
            let (_run, req, reports) = observed();
            let began = Instant::now();
            let result = LayeredModel::new(scripted.clone(), layer).call(req).await;

            let allowed = |n: usize, (kind, retry): Failure| {
                let most = if kind == ErrorKind::RateLimited { limited_retries } else { retries };
                n < most as usize && match retry {
                    Retry::Temporary(asked) => asked.is_none_or(|asked| asked <= secs(30)),
                    Retry::Unknown => kind == ErrorKind::RateLimited,
                    _ => false,
                }
            };
            let tried_again = failures.iter().enumerate().take_while(|(n, f)| allowed(*n, **f)).count();
            prop_assert_eq!(scripted.calls(), tried_again + 1);
            prop_assert!(scripted.calls() <= retries.max(limited_retries) as usize + 1);
            prop_assert_eq!(result.is_ok(), tried_again == failures.len());
            let delays: Vec<_> = reports.seen().into_iter().filter_map(|event| match event {
                EventKind::Retry { delay, .. } => Some(Duration::from_secs_f64(delay)),
                _ => None,
            }).collect();
            prop_assert_eq!(delays.len(), tried_again, "each new attempt is announced");
            for (delay, (_, retry)) in delays.iter().zip(&failures) {
                if let Retry::Temporary(Some(asked)) = retry {
                    prop_assert!(delay >= asked, "{delay:?} is shorter than {asked:?}");
                }
            }
            let waited = began.elapsed();
            let (least, rounding) = (delays.iter().sum::<Duration>(), Duration::from_millis(2) * delays.len() as u32);
            prop_assert!(waited + rounding >= least && waited <= least + rounding, "{waited:?}, not {least:?}");
            Ok(())
        })?;
    }

    #[test]
    fn a_failover_asks_in_order_until_one_answers_or_an_error_stays(
        failures in vec(option::weighted(0.8, failure()), 2..6),
        windows in vec(option::of(select(&[8_000u64, 32_000, 100_000][..])), 6),
    ) {
        let models: Vec<_> = failures.iter().zip(&windows).map(|(failure, window)| {
            let mut info = agent_core::ModelInfo::new("m");
            info.context_window = *window;
            let script = Scripted { words: "words".into(), pause: 0, failure: *failure };
            ScriptedModel::new([turn(&script)]).with_info(info)
        }).collect();
        let builder = Failover::builder(models[0].clone());
        let all = models[1..].iter().fold(builder, |all, model| all.fallback(model.clone())).build().expect("builds");
        let result = on_paused_clock(all.call(ask_to_stream()));

        let mut asked = vec![0; models.len()];
        let (mut overflowed, mut too_small) = (false, None);
        let mut expected = None;
        for (at, failure) in failures.iter().enumerate() {
            let fits = !overflowed || windows[at].is_none() || windows[at] > too_small;
            if !fits {
                continue;
            }
            asked[at] = 1;
            expected = failure.map(|(kind, _)| kind);
            match expected {
                None | Some(ErrorKind::InvalidRequest | ErrorKind::Unexpected) => break,
                Some(ErrorKind::ContextOverflow) => {
                    (overflowed, too_small) = (true, too_small.max(windows[at]));
                }
                Some(_) => {}
            }
        }
        let calls: Vec<_> = models.iter().map(ScriptedModel::calls).collect();
        prop_assert_eq!(calls, asked);
        prop_assert_eq!(result.err().map(|e| e.kind()), expected);
    }

    #[test]
    fn whatever_the_layers_do_a_reader_is_left_with_the_answer_alone(
        scripts in (vec(scripted(), 0..6), vec(scripted(), 0..6)),
        order in 0usize..6,
    ) {
        let breaker = CircuitBreaker::new().failures(2).open_for(secs(5));
        let (retry, hedge) = (|| RetryLayer::new().retries(3), || HedgeLayer::after(secs(2)));
        let [a, b] = [&scripts.0, &scripts.1].map(|script| model(script));
        let both = |a: LayeredModel, b: LayeredModel| {
            Failover::builder(a).fallback(b).sticky(Sticky::Run).build().expect("builds")
        };
        let plain = |model| LayeredModel::new(model, ());
        let stack: Arc<dyn Model> = match order {
            0 => Arc::new(both(LayeredModel::new(a, (breaker.layer("a"), retry(), hedge())), plain(b))),
            1 => Arc::new(LayeredModel::new(both(plain(a), plain(b)), retry())),
            2 => Arc::new(LayeredModel::new(both(plain(a), plain(b)), (hedge(), retry()))),
            3 => Arc::new(both(LayeredModel::new(a, (retry(), retry())), LayeredModel::new(b, hedge()))),
            4 => Arc::new(LayeredModel::new(both(LayeredModel::new(a, retry()), plain(b)), (retry(), hedge()))),
            _ => Arc::new(LayeredModel::new(a, (hedge(), hedge(), breaker.layer("b"), retry()))),
        };
        let (heard, result) = on_paused_clock(async {
            let mut req = ask_to_stream();
            let heard = listen(&mut req);
            (heard, stack.call(req).await)
        });
        if let Ok(response) = result {
            let mut reader = MessageBuilder::default();
            heard.lock().expect("lock").iter().for_each(|chunk| reader.push(chunk));
            prop_assert_eq!(&reader.into_blocks()[..], response.message.blocks());
        }
    }
}
