//! Provider-specific fields alongside the message.

use agent_core::{Block, ModelResponse, Text};
use agent_llm::Codec;
use serde_json::{Value, json};

use super::common::{DONE, codec, sent_back, streamed};

fn whole(body: &Value) -> ModelResponse {
    codec().decode(body.to_string().as_bytes()).expect("an answer")
}

fn stream(frames: &[Value]) -> ModelResponse {
    let body: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    streamed(&codec(), &(body + DONE)).expect("an answer").0
}

fn details(response: ModelResponse) -> Value {
    Value::Object(response.details)
}

fn sure(token: &str) -> Value {
    json!({"token": token, "logprob": -0.5, "top_logprobs": []})
}

#[test]
fn what_is_said_beside_the_message_is_the_same_whole_or_streamed() {
    let filter = json!({"hate": {"filtered": false, "severity": "safe"}});
    let sources = json!([{"title": "t", "url": "https://x", "snippet": "s"}]);
    let body = json!({
        "id": "r", "object": "chat.completion", "created": 7, "model": "m-1",
        "system_fingerprint": "fp", "service_tier": "default", "provider": "somebody", "x_vendor": {"a": 1, "b": 2},
        "prompt_filter_results": [{"prompt_index": 0}], "citations": ["https://x"], "search_results": sources,
        "choices": [{
            "index": 0, "message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop",
            "logprobs": {"content": [sure("a"), sure("b")], "refusal": null},
            "content_filter_results": filter, "native_finish_reason": "end_turn", "token_ids": [1, 2],
        }],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25},
    });
    let of_choice = |delta: Value, more: Value| {
        let mut choice = json!({"index": 0, "delta": delta, "content_filter_results": filter, "logprobs": null});
        choice.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        choice
    };
    let frame = |choice: Value, more: Value| {
        let mut frame = json!({
            "id": "r", "object": "chat.completion.chunk", "created": 7, "model": "m-1", "system_fingerprint": "fp",
            "service_tier": "default", "provider": "somebody", "obfuscation": "xyz", "p": "abc",
            "citations": ["https://x"], "choices": [choice],
        });
        frame.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        frame
    };
    let frames = [
        frame(
            of_choice(
                json!({"content": "a"}),
                json!({"logprobs": {"content": [sure("a")], "refusal": null}, "token_ids": [1]}),
            ),
            json!({"prompt_filter_results": [{"prompt_index": 0}], "x_vendor": {"a": 1}, "search_results": []}),
        ),
        frame(
            of_choice(
                json!({"content": "b"}),
                json!({"logprobs": {"content": [sure("b")], "refusal": null}, "token_ids": [2]}),
            ),
            json!({"x_vendor": {"b": 2}, "search_results": sources}),
        ),
        frame(
            of_choice(json!({}), json!({"finish_reason": "stop", "native_finish_reason": "end_turn"})),
            json!({"usage": {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25}}),
        ),
    ];
    let expected = json!({
        "system_fingerprint": "fp", "service_tier": "default", "provider": "somebody", "x_vendor": {"a": 1, "b": 2},
        "prompt_filter_results": [{"prompt_index": 0}], "citations": ["https://x"], "search_results": sources,
        "logprobs": {"content": [sure("a"), sure("b")], "refusal": null}, "content_filter_results": filter,
        "native_finish_reason": "end_turn", "token_ids": [1, 2],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25},
    });
    assert_eq!(details(whole(&body)), expected);
    assert_eq!(details(stream(&frames)), expected);
}

#[test]
fn an_ordinary_answer_has_no_details() {
    let usage = json!({
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 3, "audio_tokens": 0, "accepted_prediction_tokens": 0},
    });
    let choice = json!({"index": 0, "message": {"content": "a"}, "logprobs": null, "finish_reason": "stop"});
    let body = json!({"id": "r", "object": "o", "created": 1, "system_fingerprint": null, "choices": [choice], "usage": usage});
    let response = whole(&body);
    assert!(response.details.is_empty(), "{:?}", response.details);
    assert_eq!(response.usage.reasoning, 3);
}

#[test]
fn further_choices_are_details_and_only_the_first_is_heard() {
    let choice = |index: u64, text: &str| json!({"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": {"content": [sure(text)]}});
    let first = whole(&json!({"choices": [choice(1, "b"), choice(0, "a"), choice(2, "c")]}));
    assert_eq!(first.message.text(), "a");
    assert_eq!(first.details["choices"], json!([choice(1, "b"), choice(2, "c")]));

    let delta = |index: u64, text: &str| json!({"choices": [{"index": index, "delta": {"content": text}, "logprobs": {"content": [sure(text)]}}]});
    let end = |index: u64| json!({"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]});
    let frames = [delta(1, "b"), delta(0, "a"), delta(2, "c"), end(1), end(0), end(2)];
    let body: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    let (response, chunks) = streamed(&codec(), &(body + DONE)).expect("an answer");
    assert_eq!(Value::Object(response.details), Value::Object(first.details));
    assert_eq!(chunks.len(), 2, "one text and its end");
}

#[test]
fn some_servers_have_the_usage_in_the_choice() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5});
    let last = json!({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop", "usage": usage}]});
    let response = stream(&[last]);
    assert_eq!((response.usage.total(), response.details.len()), (15, 0));
}

#[test]
fn sources_are_citations_of_the_text_whole_or_streamed() {
    let cite = |url: &str| {
        let source = json!({"url": url, "title": "A title", "content": "the words", "start_index": 0, "end_index": 3});
        json!({"type": "url_citation", "url_citation": source})
    };
    let annotations = json!([cite("https://a"), {"type": "file_path", "file_path": {}}, cite("https://b")]);
    let message = json!({"role": "assistant", "content": "see [1]", "annotations": annotations});
    let read = whole(&json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}));
    let frames = [
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "see "}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "[1]", "annotations": annotations}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ];
    for response in [read, stream(&frames)] {
        let [Block::Text(Text { text, citations, .. })] = response.message.blocks() else { panic!("a text") };
        let sources: Vec<_> =
            citations.iter().map(|c| (c.url.as_deref(), c.title.as_deref(), c.quote.as_deref())).collect();
        let expected = ["https://a", "https://b"].map(|url| (Some(url), Some("A title"), Some("the words")));
        assert_eq!((text.as_str(), sources), ("see [1]", expected.to_vec()));
        let back: Value = serde_json::from_str(&sent_back(&codec(), &response.message)).expect("JSON");
        assert_eq!(back, message, "in its provider's own words");
    }
}

#[test]
fn sources_of_no_text_are_kept_as_they_came() {
    let message = json!({"role": "assistant", "content": null, "annotations": [{"type": "url_citation"}]});
    let response = whole(&json!({"choices": [{"message": message}]}));
    assert!(matches!(response.message.blocks(), [Block::Other(_)]));
    let odd = json!({"role": "assistant", "content": "a", "annotations": {"not": "a list"}});
    assert_eq!(whole(&json!({"choices": [{"message": odd}]})).message.text(), "a");
}

#[test]
fn a_delta_beside_the_message_of_a_whole_answer_says_nothing() {
    let message = json!({"role": "assistant", "content": "Paris."});
    let choice =
        json!({"index": 0, "message": message, "delta": {"role": "assistant", "content": ""}, "finish_reason": "stop"});
    assert_eq!(whole(&json!({"choices": [choice]})).message.text(), "Paris.");
}
