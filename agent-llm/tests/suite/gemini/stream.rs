//! Decoding of streamed answers.

use agent_core::{Block, Chunk, FinishReason};
use agent_llm::{Codec, SseSplitter};
use serde_json::{Value, json};

use super::support::{call, codec, events, frames, heard, raw, read, response, signed, stream, text, thought};

fn say(index: u32, delta: &str) -> Chunk {
    Chunk::Text { index, delta: delta.into() }
}

fn think(index: u32, delta: &str) -> Chunk {
    Chunk::Reasoning { index, delta: delta.into() }
}

fn end(index: u32) -> Chunk {
    Chunk::End { index }
}

#[test]
fn thoughts_end_before_the_text_and_the_text_before_the_calls() {
    let (response, chunks) = stream(&frames(&[
        vec![thought("h")],
        vec![thought("m")],
        vec![text("a")],
        vec![text("b"), call("f", json!({"x": 1}))],
        vec![call("g", json!({}))],
    ]));
    let begun = |index, id: &str, name: &str| Chunk::ToolCall { index, id: id.into(), name: name.into() };
    let arguments = |index, delta: &str| Chunk::Arguments { index, delta: delta.into() };
    let expected = [
        think(0, "h"),
        think(0, "m"),
        end(0),
        say(1, "a"),
        say(1, "b"),
        end(1),
        begun(2, "call_r1_0", "f"),
        arguments(2, r#"{"x":1}"#),
        end(2),
        begun(3, "call_r1_1", "g"),
        arguments(3, "{}"),
        end(3),
    ];
    assert_eq!(chunks, expected);
    let parts = [thought("hm"), text("ab"), call("f", json!({"x": 1})), call("g", json!({}))];
    assert_eq!(raw(&response), json!({"role": "model", "parts": parts}));
    assert_eq!((&response.finish, response.usage.total()), (&FinishReason::ToolCalls, 14));
}

#[test]
fn a_signature_is_a_boundary_in_what_goes_back_and_none_in_the_text() {
    let pieces = [
        vec![text("a")],
        vec![text("b")],
        vec![signed(text("c"))],
        vec![text("d")],
        vec![text("e")],
        vec![signed(text(""))],
    ];
    let (response, chunks) = stream(&frames(&pieces));
    let parts = [text("ab"), signed(text("c")), text("de"), signed(text(""))];
    assert_eq!(raw(&response), json!({"role": "model", "parts": parts}));
    assert_eq!(response.message.text(), "abcde");
    assert_eq!(heard(&chunks), response.message.blocks());
    let whole = read(&super::support::response(&parts, Some("STOP")));
    assert_eq!(whole.message.blocks(), response.message.blocks());
    let Block::Reasoning(proof) = &response.message.blocks()[1] else { panic!("the signature") };
    assert_eq!(proof.signature.as_deref(), Some("c2ln"));
}

#[test]
fn parts_without_a_word_are_left_out() {
    let (response, chunks) = stream(&frames(&[vec![signed(call("f", json!({})))], vec![text("")], vec![]]));
    assert_eq!(raw(&response), json!({"role": "model", "parts": [signed(call("f", json!({})))]}));
    assert_eq!(heard(&chunks), response.message.blocks());
}

#[test]
fn parts_may_be_null_or_missing() {
    let mut null = response(&[], None);
    null["candidates"][0]["content"]["parts"] = Value::Null;
    let mut missing = response(&[], Some("STOP"));
    missing["candidates"][0]["content"] = json!({"role": "model"});
    let (answer, _) = stream(&[null, response(&[text("a")], None), missing]);
    assert_eq!(answer.message.text(), "a");
}

#[test]
fn what_the_tools_of_the_provider_did_is_in_its_place() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "print(1)"}});
    let outcome = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}});
    let (answer, chunks) =
        stream(&frames(&[vec![text("a")], vec![code.clone()], vec![outcome.clone()], vec![text("b")]]));
    let parts = [text("a"), code, outcome, text("b")];
    assert_eq!(raw(&answer), json!({"role": "model", "parts": parts}));
    assert_eq!(heard(&chunks), answer.message.blocks());
    let whole = read(&response(&parts, Some("STOP")));
    assert_eq!(whole.message.blocks(), answer.message.blocks());
}

#[test]
fn the_last_word_about_an_answer_holds() {
    let mut first = response(&[text("Paris.")], None);
    first["candidates"][0]["groundingMetadata"] = json!({"webSearchQueries": ["paris"]});
    first["candidates"][0]["logprobsResult"] = json!({"chosenCandidates": [{"token": "Par"}]});
    first["usageMetadata"] = json!({"promptTokenCount": 10, "totalTokenCount": 10});
    let mut last = response(&[], Some("STOP"));
    last["candidates"][0]["groundingMetadata"] = json!({});
    last["candidates"][0]["logprobsResult"] = json!({"chosenCandidates": [{"token": "is."}]});
    let (answer, _) = stream(&[first, last]);
    assert_eq!(answer.usage.total(), 14);
    assert_eq!(answer.details["groundingMetadata"], json!({"webSearchQueries": ["paris"]}), "nothing is no word");
    assert_eq!(answer.details["logprobsResult"], json!({"chosenCandidates": [{"token": "Par"}, {"token": "is."}]}));
}

#[test]
fn further_candidates_are_put_together_beside_the_message() {
    let piece = |index: u32, words: &str, finish: Option<&str>| {
        let mut piece = response(&[text(words)], finish);
        piece["candidates"][0]["index"] = index.into();
        piece
    };
    let frames = [piece(0, "a", None), piece(1, "x", None), piece(0, "b", Some("STOP")), piece(1, "y", Some("SAFETY"))];
    let (answer, chunks) = stream(&frames);
    assert_eq!((answer.message.text().as_str(), chunks), ("ab", vec![say(0, "a"), say(0, "b"), end(0)]));
    let other = json!({"index": 1, "content": {"role": "model", "parts": [text("xy")]}, "finishReason": "SAFETY"});
    assert_eq!(answer.details["candidates"], json!([other]));
}

#[test]
fn half_a_character_does_not_spoil_the_stream() {
    let frame = response(&[text("a#")], None).to_string().replace('#', r"\ud83d");
    let body = format!("data: {frame}\n\n") + &events(&[response(&[text("b")], Some("STOP"))]);
    let (answer, _) = super::common::streamed(&codec(), &body).expect("an answer");
    assert_eq!(answer.message.text(), "a\u{fffd}b");
}

#[test]
fn without_a_listener_the_answer_is_the_same_and_no_chunks_are_made() {
    let body = events(&frames(&[vec![thought("hm")], vec![signed(text("a"))], vec![call("f", json!({}))]]));
    let (mut decoder, mut chunks) = (codec().decoder(false), Vec::new());
    let mut splitter = SseSplitter::default();
    splitter.push(body.as_bytes(), |e| decoder.frame(e.data, &mut chunks)).expect("whole events");
    let answer = decoder.finish(&mut chunks).expect("an answer");
    assert_eq!(answer, super::common::streamed(&codec(), &body).expect("an answer").0);
    assert!(chunks.is_empty());
}

#[test]
fn arguments_may_come_in_pieces() {
    let piece = |piece: Value| json!({"functionCall": piece});
    let arg = |path: &str, text: &str| json!({"jsonPath": path, "stringValue": text, "willContinue": true});
    let (answer, chunks) = stream(&frames(&[
        vec![text("a"), signed(piece(json!({"name": "f", "willContinue": true})))],
        vec![piece(json!({"partialArgs": [arg("$.city", "Bos")], "willContinue": true}))],
        vec![piece(
            json!({"partialArgs": [arg("$.city", "ton"), {"jsonPath": "$.n", "numberValue": 2}], "willContinue": true}),
        )],
        vec![piece(json!({}))],
        vec![piece(json!({"name": "g", "willContinue": true})), text("b")],
    ]));
    let parts = [text("a"), signed(call("f", json!({"city": "Boston", "n": 2}))), call("g", json!({})), text("b")];
    assert_eq!(raw(&answer), json!({"role": "model", "parts": parts}));
    assert_eq!(heard(&chunks), answer.message.blocks());
    let whole = read(&response(&parts, Some("STOP")));
    assert_eq!(whole.message.blocks(), answer.message.blocks());
}

#[test]
fn fields_of_a_content_that_nobody_knows_are_kept() {
    let mut frames = frames(&[vec![text("a")], vec![text("b")]]);
    frames[0]["candidates"][0]["content"]["vendor"] = json!({"n": 1});
    let (answer, _) = stream(&frames);
    assert_eq!(raw(&answer), json!({"role": "model", "vendor": {"n": 1}, "parts": [text("ab")]}));
}

#[test]
fn a_call_without_a_name_has_one_that_others_take() {
    let (answer, _) = stream(&frames(&[vec![json!({"functionCall": {"args": {}}})]]));
    assert!(matches!(answer.message.blocks(), [Block::ToolCall(call)] if &*call.name == "unknown"));
}
