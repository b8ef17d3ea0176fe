//! CPU time of decoding streams: the minimum of several runs, since other work only adds to it.

use std::{
    fs,
    sync::LazyLock,
    time::{Duration, Instant},
};

use agent_llm::Codec;
use serde_json::{Value, json};

use super::{codec, input_delta, start, stream_of, text_delta};

/// Returns the data of a stream's events.
fn frames(events: &[Value]) -> Vec<String> {
    let body = stream_of(events);
    body.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
}

/// Returns this thread's CPU time if the system reports it, with a resolution of a few
/// milliseconds; else the wall-clock time.
fn now() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

fn least(runs: usize, mut work: impl FnMut()) -> Duration {
    let times = std::iter::repeat_with(|| {
        let began = now();
        work();
        now() - began
    });
    times.take(runs).min().unwrap_or_default()
}

fn decode(frames: &[String], is_heard: bool) {
    let (mut decoder, mut chunks) = (codec().decoder(is_heard), Vec::new());
    for frame in frames {
        decoder.frame(frame, &mut chunks).expect("a frame");
        chunks.clear();
    }
    decoder.finish(&mut chunks).expect("an answer");
}

fn arguments(deltas: usize) -> Vec<String> {
    let call = start(0, json!({"type": "tool_use", "id": "c", "name": "f", "input": {}}));
    let text = input_delta(0, "some words of the text ");
    let deltas = std::iter::repeat_n(text, deltas);
    let begin = [call, input_delta(0, "{\"text\":\"")];
    frames(&begin.into_iter().chain(deltas).chain([input_delta(0, "\"}")]).collect::<Vec<_>>())
}

#[test]
fn arguments_cost_as_much_per_delta_however_many_there_are() {
    let (few, many) = (arguments(1_000), arguments(100_000));
    let few = least(2, || (0..100).for_each(|_| decode(&few, true))) / 100_000;
    let many = least(2, || decode(&many, true)) / 100_000;
    println!("per delta of 1,000: {few:?}, of 100,000: {many:?}");
    // Both take the same time; quadratic behaviour would take a hundred times as long.
    assert!(many <= few * 3, "{many:?} for a delta of many, {few:?} for one of few");
}

/// Higher without optimisation, where the parser is relatively cheap: most of its code is compiled
/// with the dependencies' profile.
const MOST_OF_PARSING: f64 = if cfg!(debug_assertions) { 2.5 } else { 1.3 };

#[test]
fn text_costs_little_more_than_parsing_its_frames() {
    let text = ["Some words ", "of an answer, ", "with \"quotes\"\n", "and more of them. "];
    let deltas = (0..40_000).map(|n| text_delta(0, text[n % text.len()]));
    let begin = start(0, json!({"type": "text", "text": ""}));
    let frames = frames(&[begin].into_iter().chain(deltas).collect::<Vec<_>>());
    let parsing = least(3, || {
        for frame in &frames {
            std::hint::black_box(serde_json::from_str::<Value>(frame).expect("JSON"));
        }
    });
    for is_heard in [true, false] {
        let decoding = least(3, || decode(&frames, is_heard));
        println!("heard: {is_heard}, decoding: {decoding:?}, parsing: {parsing:?}");
        assert!(decoding <= parsing.mul_f64(MOST_OF_PARSING), "{decoding:?} to decode, {parsing:?} to parse");
    }
}
