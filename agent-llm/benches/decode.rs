//! Cost of decoding a streamed answer, for every wire: compared with serde_json, which parses the
//! same events into a `Value` and keeps nothing; the cost per piece of a long call compared with a
//! short one; and allocations per event.
//!
//! A stream is decoded many times, in chunks as from the network, and the best time of each chunk
//! counts: other load disturbs single chunks, rarely the same one every time. Times are good for
//! ratios within one run; allocations are exact.
//!
//! `cargo bench -p agent-llm --bench decode`

#[path = "../tests/suite/samples/mod.rs"]
mod samples;

use std::{
    alloc::System,
    hint::black_box,
    time::{Duration, Instant},
};

use agent_core::Chunk;
use agent_llm::{SseSplitter, conformance::Answer, conformance::event_stream};
use serde_json::Value;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::samples::{ROWS, Row, arguments_of, text_of};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of events of a text stream.
const EVENTS: usize = 2_000;

/// Number of pieces of the arguments of a short call, and of a long one.
const PIECES: [usize; 2] = [1_000, 100_000];

/// Total number of events decoded to find the best times of a stream.
const READ: usize = 600_000;

/// Size of a chunk, in bytes.
const PIECE: usize = 16 << 10;

/// Returns the bytes of `answer` with its content event repeated `count` times.
fn repeated(row: &Row, answer: &Answer, says: fn(Chunk) -> Option<String>, count: usize) -> Option<String> {
    let (at, _) = row.event(answer, says)?;
    let (before, after) = answer.events().split_at(at);
    let repeated = std::iter::repeat_n(&after[0], count);
    Some(event_stream(before.iter().chain(repeated).chain(&after[1..])))
}

/// Measures nanoseconds and allocations of `body`, per one of the `per` events that it decodes.
/// `body` signals the end of each chunk.
fn measure(per: usize, mut body: impl FnMut(&mut dyn FnMut())) -> (f64, f64) {
    let mut best: Vec<Duration> = Vec::new();
    for _ in 0..(READ / per).clamp(6, 60) {
        let (mut pieces, mut last) = (0, Instant::now());
        body(&mut || {
            let took = last.elapsed();
            match best.get_mut(pieces) {
                Some(best) => *best = took.min(*best),
                None => best.push(took),
            }
            (pieces, last) = (pieces + 1, Instant::now());
        });
    }
    let region = Region::new(ALLOCATOR);
    body(&mut || {});
    let change = region.change();
    let nanos = best.iter().sum::<Duration>().as_nanos();
    (nanos as f64 / per as f64, (change.allocations + change.reallocations) as f64 / per as f64)
}

/// Decodes the stream as a model does, in chunks as from the network.
fn read(row: &Row, stream: &str, listened_to: bool, done: &mut dyn FnMut()) {
    let codec = (row.codec)();
    let (mut decoder, mut splitter, mut chunks) = (codec.decoder(listened_to), SseSplitter::default(), Vec::new());
    for piece in stream.as_bytes().chunks(PIECE) {
        let frame = |event: agent_llm::SseEvent<'_>| {
            decoder.frame(event.data, &mut chunks)?;
            black_box(chunks.drain(..).count());
            Ok(())
        };
        splitter.push(piece, frame).expect("a frame");
        done();
    }
    // A call of a thousand equal pieces has invalid arguments, for which a codec may return an
    // error.
    drop(black_box(decoder.finish(&mut chunks)));
    done();
}

/// Parses the stream's events into values.
fn parse(stream: &str, done: &mut dyn FnMut()) {
    let mut splitter = SseSplitter::default();
    for piece in stream.as_bytes().chunks(PIECE) {
        let parse = |event: agent_llm::SseEvent<'_>| {
            drop(black_box(serde_json::from_str::<Value>(event.data)));
            Ok(())
        };
        splitter.push(piece, parse).expect("events");
        done();
    }
}

fn text(row: &Row) {
    let stream = repeated(row, &row.text(), text_of, EVENTS).expect("text is heard");
    let parsed = measure(EVENTS, |done| parse(&stream, done));
    println!("{:<20} serde_json into Value: {:>7.0} ns {:>5.2} allocations an event", row.wire, parsed.0, parsed.1);
    for (what, listened_to) in [("decoded, chunks made", true), ("decoded, nobody listens", false)] {
        let (time, allocations) = measure(EVENTS, |done| read(row, &stream, listened_to, done));
        let ratio = time / parsed.0;
        println!(
            "{:<20} {what}: {time:>7.0} ns {allocations:>5.2} allocations an event, {ratio:.2} of serde_json",
            row.wire
        );
    }
}

fn arguments(row: &Row) {
    let per_piece = PIECES.map(|count| {
        let stream = repeated(row, &row.calls(), arguments_of, count)?;
        Some(measure(count, |done| read(row, &stream, true, done)).0)
    });
    match per_piece {
        [Some(short), Some(long)] => println!(
            "{:<20} arguments in {} pieces: {short:.0} ns a piece; in {}: {long:.0} ns; ratio {:.2}",
            row.wire,
            PIECES[0],
            PIECES[1],
            long / short
        ),
        _ => println!("{:<20} arguments come whole", row.wire),
    }
}

fn main() {
    for row in ROWS {
        text(row);
        arguments(row);
    }
}
