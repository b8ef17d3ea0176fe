//! Properties of invalid data: real streams, bodies and requests, mutated at random.
//!
//! `AGENT_FUZZ_ITERATIONS` sets the total number of mutations (default 100,000, a few seconds),
//! `AGENT_FUZZ_SEED` the first seed (default 0), `AGENT_FUZZ_WIRE` restricts the test to one wire.
//! A failure prints the settings that reproduce it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use agent_core::{
    Chunk, ErrorKind, History, Message, ModelRequest, ModelResponse, Result, model::MessageBuilder,
    testing::detached_run,
};
use agent_llm::{
    Codec, Framing, RequestReader, SseSplitter,
    conformance::{Mutator, Samples, framed},
};
use serde::de::IgnoredAny;

use super::samples::ROWS;

/// One wire with its data to mutate.
struct Target {
    wire: &'static str,
    codec: Arc<dyn RequestReader>,
    samples: Samples,
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

/// Runs `body` for every seed; it takes one part in `share` of all iterations.
fn for_every_seed(what: &str, share: u64, body: impl Fn(&mut Mutator, &Target)) {
    let only = std::env::var("AGENT_FUZZ_WIRE").ok();
    let rows = ROWS.iter().filter(|row| only.as_ref().is_none_or(|only| only == row.wire));
    let targets = rows.map(|row| Target { wire: row.wire, codec: (row.codec)(), samples: (row.samples)() });
    let targets: Vec<_> = targets.collect();
    let (first, times) = (setting("AGENT_FUZZ_SEED", 0), setting("AGENT_FUZZ_ITERATIONS", 100_000).div_ceil(share));
    for seed in first..first + times {
        let mut random = Mutator::new(seed);
        let target = &targets[random.below(targets.len())];
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&mut random, target))) {
            let wire = only.map(|wire| format!(" AGENT_FUZZ_WIRE={wire}")).unwrap_or_default();
            eprintln!("{what} of {}: again with AGENT_FUZZ_SEED={seed} AGENT_FUZZ_ITERATIONS=1{wire}", target.wire);
            std::panic::resume_unwind(panic);
        }
    }
    println!("{what}: {times} times from seed {first}");
}

/// Returns the events that the splitter finds in the pieces.
fn split<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
    let (mut splitter, mut events) = (SseSplitter::default(), Vec::new());
    let mut take = |event: agent_llm::SseEvent<'_>| {
        events.push((event.name.to_owned(), event.data.to_owned()));
        Ok(())
    };
    pieces.into_iter().try_for_each(|piece| splitter.push(piece, &mut take)).expect("short events");
    splitter.finish(take).expect("short events");
    events
}

#[test]
fn the_splitter_finds_the_same_events_however_bytes_are_cut() {
    for_every_seed("splitting", 2, |random, target| {
        let answers = target.samples.answers();
        let mut bytes = answers[random.below(answers.len())].stream().into_bytes();
        random.bytes(&mut bytes);
        let whole = split([&bytes[..]]);
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(random.below(40.min(rest.len())) + 1);
            pieces.push(piece);
            rest = more;
        }
        assert_eq!(split(pieces), whole);
        // An invalid UTF-8 byte becomes three bytes.
        assert!(whole.iter().map(|(_, data)| data.len()).sum::<usize>() <= 3 * bytes.len(), "nothing is made up");
    });
}

/// Returns the events that a splitter finds in the pieces, and its final error.
fn split_by(framing: Framing, pieces: &[&[u8]]) -> (Vec<String>, Option<ErrorKind>) {
    let (mut splitter, mut events) = (framing.splitter(), Vec::new());
    let mut take = |event: &str| {
        events.push(event.to_owned());
        Ok(())
    };
    let read = pieces.iter().try_for_each(|piece| splitter.push(piece, &mut take));
    let read = read.and_then(|()| splitter.finish(&mut take));
    (events, read.err().map(|error| error.kind()))
}

#[test]
fn a_framing_finds_the_same_events_or_the_same_error_however_bytes_are_cut() {
    for_every_seed("framing", 4, |random, target| {
        let (framing, answers) = (target.codec.framing(), target.samples.answers());
        let mut bytes = framed(framing, answers[random.below(answers.len())].events());
        if random.below(8) > 0 {
            random.bytes(&mut bytes);
        }
        let whole = split_by(framing, &[&bytes[..]]);
        let (mut pieces, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(random.below(40.min(rest.len())) + 1);
            pieces.push(piece);
            rest = more;
        }
        assert_eq!(split_by(framing, &pieces), whole);
        assert_ne!(whole.1, Some(ErrorKind::Unexpected));
    });
}

fn read(codec: &dyn Codec, events: &[String], listened_to: bool) -> (Result<ModelResponse>, Vec<Chunk>) {
    let (mut decoder, mut chunks) = (codec.decoder(listened_to), Vec::new());
    let read = events.iter().try_for_each(|event| decoder.frame(event, &mut chunks));
    let response = read.and_then(|()| decoder.finish(&mut chunks));
    (response, chunks)
}

#[test]
fn a_damaged_stream_is_one_answer_to_all_or_one_error() {
    for_every_seed("streams", 4, |random, target| {
        let answers = target.samples.answers();
        let mut events = answers[random.below(answers.len())].events().to_vec();
        random.events(&mut events);
        let (heard, chunks) = read(&*target.codec, &events, true);
        let (unheard, _) = read(&*target.codec, &events, false);
        match (heard, unheard) {
            (Ok(heard), Ok(unheard)) => {
                assert_eq!(heard, unheard, "{events:#?}");
                let mut listener = MessageBuilder::default();
                chunks.iter().for_each(|chunk| listener.push(chunk));
                assert_eq!(listener.into_blocks(), heard.message.blocks(), "{events:#?}");
                goes_back(&*target.codec, heard);
            }
            (Err(heard), Err(unheard)) => {
                assert_eq!(heard.kind(), unheard.kind(), "{events:#?}");
                assert_ne!(heard.kind(), ErrorKind::Unexpected, "{events:#?}");
            }
            other => panic!("{other:?} of {events:#?}"),
        }
    });
}

/// Checks that a request with the decoded response is valid JSON.
fn goes_back(codec: &dyn Codec, response: ModelResponse) {
    let history = History::import([Message::user("go"), Message::Assistant(response.message)]).0;
    let request = ModelRequest::new(detached_run(history).cx().clone());
    is_json(codec, &request);
}

fn is_json(codec: &dyn Codec, request: &ModelRequest) {
    match codec.encode(request) {
        // A number that `Value` cannot represent is sent back unchanged.
        Ok(sent) => drop(serde_json::from_slice::<IgnoredAny>(sent.body()).expect("JSON")),
        Err(error) => assert_ne!(error.kind(), ErrorKind::Unexpected, "{error:?}"),
    }
}

#[test]
fn a_damaged_body_is_an_answer_that_can_go_back_or_an_error() {
    for_every_seed("bodies", 6, |random, target| {
        let answers = target.samples.answers();
        let mut body = answers[random.below(answers.len())].whole().to_owned();
        random.json(&mut body);
        let mut body = body.into_bytes();
        if random.below(4) == 0 {
            random.bytes(&mut body);
        }
        match target.codec.decode(&body) {
            Ok(response) => goes_back(&*target.codec, response),
            Err(error) => assert_ne!(error.kind(), ErrorKind::Unexpected, "{error:?} of {}", body.escape_ascii()),
        }
    });
}

#[test]
fn a_damaged_request_is_a_request_or_an_error() {
    for_every_seed("requests", 12, |random, target| {
        let requests: Vec<_> = target.samples.requests().collect();
        if requests.is_empty() {
            return;
        }
        let mut body = requests[random.below(requests.len())].to_owned();
        random.json(&mut body);
        match target.codec.decode_request(body.as_bytes()) {
            Ok(read) => is_json(&*target.codec, &read.into_request(detached_run(History::default()).cx().clone())),
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error:?} of {body}"),
        }
    });
}
