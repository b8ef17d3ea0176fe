//! Decoding of non-streamed answers.

use agent_core::{
    Block, FinishReason,
    message::{Citation, MediaSource},
};
use agent_llm::Codec;
use serde_json::{Value, json};

use super::support::{
    blocks, call, codec, events, frames, raw, read, response, sent_back, signed, stream, text, thought,
};

#[test]
fn an_answer_is_read_with_all_that_is_said_about_it() {
    let response = read(&response(&[text("hello")], Some("STOP")));
    assert_eq!((response.message.text().as_str(), &response.finish), ("hello", &FinishReason::Stop));
    assert_eq!((response.id.as_deref(), response.model.as_deref()), (Some("r1"), Some("gemini-2.5-flash-001")));
    assert_eq!((response.usage.input, response.usage.output, response.usage.total()), (10, 4, 14));
    let raw = response.message.raw().expect("raw");
    assert_eq!(raw.to_value(), json!({"parts": [{"text": "hello"}], "role": "model"}));
    let origin = (raw.origin().wire(), raw.origin().provider(), raw.origin().model());
    assert_eq!(origin, ("gemini-generate", "acme", "gemini-2.5-flash"));
    assert_eq!(response.details["usageMetadata"]["totalTokenCount"], 14);
}

#[test]
fn every_kind_of_part_is_a_block_in_its_place() {
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}});
    let stored = json!({"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/f"}});
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let outcome = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}});
    let unknown = json!({"holographic": {"n": 1}});
    let sketch = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thought": true});
    let parts = [thought("hm"), text("a"), call("f", json!({"x": 1})), image, stored, code, outcome, unknown, sketch];
    let blocks = blocks(&parts);
    let [reasoning, said, asked, image, stored, others @ ..] = &blocks[..] else { panic!("{blocks:?}") };
    assert_eq!((reasoning, said), (&Block::reasoning("hm"), &Block::text("a")));
    assert_eq!(asked, &Block::tool_call("call_r1_0", "f", r#"{"x":1}"#));
    assert!(matches!(image, Block::Image(m) if m.source == MediaSource::Base64("QUJD".into())), "{image:?}");
    assert!(matches!(stored, Block::Document(m) if m.source == MediaSource::File("gs://b/f".into())), "{stored:?}");
    let raw = |block: &Block| match block {
        Block::Server(call) => call.raw.to_value(),
        Block::Other(raw) => raw.to_value(),
        _ => Value::Null,
    };
    let others: Vec<Value> = others.iter().map(raw).collect();
    assert_eq!(others, parts[5..], "what was run, what is not understood, and what is only thought");
}

#[test]
fn a_cut_between_texts_means_nothing() {
    assert_eq!(
        blocks(&[text("a"), text(""), text("b"), thought("c"), thought("d")]),
        [Block::text("ab"), Block::reasoning("cd")]
    );
}

#[test]
fn signatures_are_kept_where_they_stand() {
    let parts = [
        signed(thought("hm")),
        text("a"),
        signed(text("b")),
        text("c"),
        signed(call("f", json!({}))),
        signed(text("")),
    ];
    let blocks = blocks(&parts);
    let [Block::Reasoning(thoughts), Block::Text(words), Block::ToolCall(call), Block::Reasoning(proof)] = &blocks[..]
    else {
        panic!("{blocks:?}")
    };
    assert_eq!((thoughts.text.as_str(), thoughts.signature.as_deref()), ("hm", Some("c2ln")));
    assert_eq!(words.text, "abc");
    assert_eq!(words.raw.as_ref().expect("raw").to_value(), json!(parts[1..4]));
    assert_eq!(call.raw.as_ref().expect("raw").to_value(), parts[4]);
    assert_eq!((proof.text.as_str(), proof.signature.as_deref()), ("", Some("c2ln")), "it stands alone");
    assert_eq!(proof.raw.as_ref().expect("raw").to_value(), parts[5]);
    let bare = json!({"thoughtSignature": "c2ln"});
    assert!(matches!(&super::support::blocks(&[bare])[..], [Block::Reasoning(r)] if r.signature.is_some()));
}

#[test]
fn a_model_may_say_nothing() {
    let empty = [
        json!({"role": "model"}),
        json!({"role": "model", "parts": null}),
        json!({"parts": []}),
        json!({"parts": [{"text": ""}]}),
        Value::Null,
    ];
    for content in empty {
        let body = json!({"candidates": [{"content": content, "finishReason": "MAX_TOKENS"}]});
        let response = read(&body);
        assert!(response.message.is_empty() && response.finish == FinishReason::Length, "{body}");
        let (streamed, chunks) = stream(&[body]);
        assert!(streamed.message.is_empty() && streamed.finish == response.finish && chunks.is_empty());
    }
    let withheld = read(&json!({"candidates": [{"finishReason": "MODEL_ARMOR", "finishMessage": "no"}]}));
    assert_eq!(withheld.finish, FinishReason::ContentFilter);
    assert_eq!(
        (&withheld.details["finishReason"], &withheld.details["finishMessage"]),
        (&json!("MODEL_ARMOR"), &json!("no"))
    );
}

#[test]
fn every_end_has_its_reason() {
    let end = |parts: &[Value], finish| read(&response(parts, Some(finish))).finish;
    let words = [text("a")];
    assert_eq!(end(&words, "STOP"), FinishReason::Stop);
    assert_eq!(end(&words, "MAX_TOKENS"), FinishReason::Length);
    for withheld in ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"] {
        assert_eq!(end(&words, withheld), FinishReason::ContentFilter, "{withheld}");
    }
    for other in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "LANGUAGE", "OTHER", "TIRED"] {
        assert_eq!(end(&words, other), FinishReason::Other(other.into()));
    }
    let calls = [call("f", json!({}))];
    assert_eq!(end(&calls, "STOP"), FinishReason::ToolCalls);
    assert_eq!(end(&calls, "MAX_TOKENS"), FinishReason::Length, "there might have been more");
}

#[test]
fn only_the_first_candidate_is_the_message() {
    let mut body = response(&[text("a")], Some("STOP"));
    let second = json!({"content": {"parts": [{"text": "b"}], "role": "model"}, "finishReason": "STOP", "index": 1, "avgLogprobs": -1.5});
    let first = body["candidates"][0].take();
    body["candidates"] = json!([second, first]);
    let response = read(&body);
    assert_eq!(response.message.text(), "a");
    assert_eq!(response.details["candidates"], json!([second]));
    let (streamed, _) = stream(&[body]);
    assert_eq!(streamed.details, response.details);
}

#[test]
fn sources_are_put_to_the_words_that_they_support() {
    let mut body = response(
        &[text("Paris is in France. It is old."), json!({"executableCode": {}}), text("Rome too.")],
        Some("STOP"),
    );
    let page = json!({"web": {"uri": "https://a", "title": "A"}});
    let passage = json!({"retrievedContext": {"title": "B", "text": "Rome is old."}});
    body["candidates"][0]["groundingMetadata"] = json!({
        "webSearchQueries": ["paris"], "groundingChunks": [page, passage],
        "groundingSupports": [
            {"segment": {"endIndex": 19, "text": "Paris is in France."}, "groundingChunkIndices": [0]},
            {"segment": {"startIndex": 20, "endIndex": 30, "text": "It is old."}, "groundingChunkIndices": [0, 7]},
            {"segment": {"text": "Rome too."}, "groundingChunkIndices": [1]},
            {"segment": {"text": "Nobody said this."}, "groundingChunkIndices": [1]},
        ],
    });
    let response = read(&body);
    let citations = |at: usize| {
        let Block::Text(text) = &response.message.blocks()[at] else { panic!("a text") };
        text.citations.clone()
    };
    let mut web = Citation::default();
    (web.url, web.title) = (Some("https://a".into()), Some("A".into()));
    let mut quote = Citation::default();
    (quote.title, quote.quote) = (Some("B".into()), Some("Rome is old.".into()));
    let said = |text: &str, whole: &str, source: &Citation| {
        let at = whole.find(text).expect("it is there");
        let mut source = source.clone();
        source.bytes = Some(at..at + text.len());
        source
    };
    let first = "Paris is in France. It is old.";
    assert_eq!(citations(0), ["Paris is in France.", "It is old."].map(|text| said(text, first, &web)));
    assert_eq!(citations(2), [said("Rome too.", "Rome too.", &quote)]);
    assert_eq!(response.details["groundingMetadata"], body["candidates"][0]["groundingMetadata"]);

    let (streamed, chunks) = stream(&[body]);
    assert_eq!(streamed.message.blocks(), response.message.blocks());
    assert_eq!(super::support::heard(&chunks), response.message.blocks());
}

#[test]
fn what_was_recited_is_cited_if_it_is_clear_where() {
    let source = json!({"startIndex": 0, "endIndex": 5, "uri": "https://poem", "license": "x"});
    let cite = |parts: &[Value], field: &str| {
        let mut body = response(parts, Some("STOP"));
        body["candidates"][0]["citationMetadata"] = json!({field: [source]});
        let response = read(&body);
        assert_eq!(response.details["citationMetadata"], json!({field: [source]}));
        let texts =
            response.message.blocks().iter().filter_map(|b| if let Block::Text(t) = b { Some(t) } else { None });
        texts.flat_map(|text| text.citations.clone()).filter_map(|citation| citation.url).collect::<Vec<_>>()
    };
    assert_eq!(cite(&[text("roses")], "citationSources"), ["https://poem"]);
    assert_eq!(cite(&[text("roses")], "citations"), ["https://poem"]);
    assert!(cite(&[text("roses"), call("f", json!({})), text("are")], "citations").is_empty());
}

#[test]
fn a_body_that_is_a_list_is_what_a_stream_would_have_held() {
    let frames =
        frames(&[vec![thought("h")], vec![thought("m"), text("a")], vec![text("b")], vec![call("f", json!({}))]]);
    let list = codec().decode(json!(frames).to_string().as_bytes()).expect("an answer");
    assert_eq!(list, stream(&frames).0);
    assert_eq!(raw(&list), json!({"parts": [thought("hm"), text("ab"), call("f", json!({}))], "role": "model"}));
    assert_eq!(sent_back(&codec(), &list.message), raw(&list));
    assert!(events(&frames).contains("data: "));
}

#[test]
fn arguments_are_an_object_though_none_are_given() {
    let bare = json!({"functionCall": {"name": "f"}});
    assert!(matches!(&blocks(&[bare])[..], [Block::ToolCall(call)] if call.arguments == "{}"));
    let body = response(&[call("f", json!({"b": {"d": 1, "c": "=" }, "a": [1.5]}))], Some("STOP"));
    let written = body.to_string();
    let otherwise = serde_json::to_string_pretty(&body).expect("JSON").replace('=', r"\u003d");
    let [one, other] = [written, otherwise].map(|body| codec().decode(body.as_bytes()).expect("an answer"));
    assert_eq!(one.message.blocks(), other.message.blocks(), "the same object is the same text");
}
