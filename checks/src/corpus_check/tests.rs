//! Tests of the checks: with hand-written exchanges, and with faulty codecs.

use std::collections::BTreeMap;

use agent::{
    Error, ModelRequest, ModelResponse, Result,
    core::{Chunk, message::Origin},
    llm::{Codec, Decoder, ParsedRequest, Progress, RequestReader},
};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::{
    checks::{Check, Outcome},
    outcomes,
    report::Report,
    wire_of,
};
use crate::recordings::{Exchange, Frames, Said, WIRES, Wire};

/// Exchanges of each wire, with the expected outcome of each check.
const FIXTURES: &[(&str, &str)] = &[
    ("openai-chat", include_str!("fixtures/openai_chat.jsonl")),
    ("openai-responses", include_str!("fixtures/openai_responses.jsonl")),
    ("gemini-generate", include_str!("fixtures/gemini_generate.jsonl")),
    ("anthropic-messages", include_str!("fixtures/anthropic_messages.jsonl")),
    ("cohere-chat", include_str!("fixtures/cohere_chat.jsonl")),
    ("bedrock-converse", include_str!("fixtures/bedrock_converse.jsonl")),
    ("bedrock-invoke", include_str!("fixtures/bedrock_invoke.jsonl")),
    ("ollama-chat", include_str!("fixtures/ollama_chat.jsonl")),
];

#[derive(Deserialize)]
struct Fixture {
    #[serde(flatten)]
    exchange: Exchange,
    expect: BTreeMap<String, String>,
}

fn fixtures(wire: &str) -> Vec<Fixture> {
    let (_, lines) = FIXTURES.iter().find(|(name, _)| *name == wire).expect("every wire has fixtures");
    lines.lines().map(|line| serde_json::from_str(line).expect("a fixture")).collect()
}

fn in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => "passed".into(),
        Outcome::Failed(reasons) => format!("failed: {reasons:?}"),
        Outcome::NotCheckable(why) => format!("not checkable: {why}"),
        Outcome::NotMeant => "not meant".into(),
    }
}

#[test]
fn every_wire_keeps_what_its_fixtures_say() {
    for wire in WIRES {
        for Fixture { exchange, expect } in fixtures(wire.api()) {
            let found = outcomes(*wire, &exchange).into_iter();
            let found = found.map(|(check, outcome)| (check.as_str().to_owned(), in_words(&outcome)));
            assert_eq!(found.collect::<BTreeMap<_, _>>(), expect, "{}", exchange.id);
        }
    }
}

/// Fault of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Drops the last block of a whole response.
    Forgets,
    /// Drops a field of a request.
    Unasks,
    /// Accepts a truncated stream as a response.
    Completes,
    /// Panics.
    Panics,
}

/// The first wire, with a faulty codec.
struct Lying(Lie);

struct LyingCodec(Lie, Box<dyn RequestReader>);

impl RequestReader for LyingCodec {
    fn decode_request(&self, body: &[u8]) -> Result<ParsedRequest> {
        let mut read = self.1.decode_request(body)?;
        if self.0 == Lie::Unasks {
            read.params.temperature = None;
        }
        Ok(read)
    }
}

impl Codec for LyingCodec {
    fn origin(&self) -> &Origin {
        self.1.origin()
    }

    fn encode(&self, req: &ModelRequest) -> Result<http::Request<bytes::Bytes>> {
        self.1.encode(req)
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        assert!(self.0 != Lie::Panics, "a lie");
        let mut response = self.1.decode(body)?;
        if self.0 == Lie::Forgets {
            response.message.blocks_mut().pop();
        }
        Ok(response)
    }

    fn decode_error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        self.1.decode_error(status, headers, body)
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        if self.0 == Lie::Completes { Box::new(Gullible) } else { self.1.decoder(chunks) }
    }
}

struct Gullible;

impl Decoder for Gullible {
    fn frame(&mut self, _: &str, _: &mut Vec<Chunk>) -> Result<()> {
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress::Complete
    }

    fn finish(self: Box<Self>, _: &mut Vec<Chunk>) -> Result<ModelResponse> {
        Ok(ModelResponse::new(agent::AssistantMessage::from("something")))
    }
}

impl Wire for Lying {
    fn api(&self) -> &'static str {
        WIRES[0].api()
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        Ok(Box::new(LyingCodec(self.0, WIRES[0].codec(exchange)?)))
    }

    fn is_error(&self, json: &Value) -> bool {
        WIRES[0].is_error(json)
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        WIRES[0].is_complete(frames)
    }

    fn whole(&self, frames: &[Value]) -> Value {
        WIRES[0].whole(frames)
    }

    fn turn(&self, whole: &Value) -> Option<Value> {
        WIRES[0].turn(whole)
    }

    fn said(&self, turn: &Value) -> Said {
        WIRES[0].said(turn)
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        WIRES[0].finish(whole)
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        WIRES[0].sent_back(request)
    }
}

/// Returns the checks that fail for one of the fixtures.
fn failed(lie: Lie) -> Vec<Check> {
    let fixtures = fixtures(WIRES[0].api());
    let outcomes = fixtures.iter().flat_map(|fixture| outcomes(&Lying(lie), &fixture.exchange));
    let mut failed: Vec<_> =
        outcomes.filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_))).map(|(check, _)| check).collect();
    failed.sort_unstable();
    failed.dedup();
    failed
}

#[test]
fn a_codec_that_lies_is_found_out() {
    assert_eq!(failed(Lie::Forgets), [Check::Decode, Check::Fold, Check::Replay]);
    assert_eq!(failed(Lie::Unasks), [Check::Request]);
    assert_eq!(failed(Lie::Completes), [Check::Decode, Check::Fold, Check::Replay]);
    assert_eq!(failed(Lie::Panics), [Check::Decode, Check::Fold, Check::Replay]);
}

#[test]
fn one_failure_in_a_hundred_is_too_many() {
    let exchange = fixtures(WIRES[0].api()).swap_remove(0).exchange;
    let (mut report, mut failures) = (Report::default(), Vec::new());
    let mut count = |outcome: Outcome| report.count(&exchange, [(Check::Replay, outcome)], &mut failures);
    (0..99).try_for_each(|_| count(Outcome::Passed)).expect("written");
    count(Outcome::NotCheckable("why")).expect("written");
    count(Outcome::Failed(vec!["/a: 1 is missing".into()])).expect("written");
    assert_eq!(report.insufficient(), [(WIRES[0].api().to_owned(), Check::Replay)]);
    let line: Value = serde_json::from_slice(&failures).expect("one line of JSON");
    assert_eq!((&line["check"], &line["reason"]), (&"replay".into(), &"/a: 1 is missing".into()));
    let table = report.to_string();
    assert!(table.contains("99/100  99.00%") && table.contains("1: why"), "{table}");
}

#[test]
fn every_wire_is_found_by_its_name_and_has_fixtures() {
    assert!(WIRES.iter().all(|wire| wire_of(wire.api()).is_some() && !fixtures(wire.api()).is_empty()));
    assert!(wire_of("telegraph").is_none());
}
