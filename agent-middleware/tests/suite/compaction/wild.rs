//! Conversations of every kind, and strategies to compact them.

use std::sync::{Arc, LazyLock};

use agent_core::{
    AssistantMessage, Block, History, Media, Message, ModelRequest, Part, RunCx, ToolMessage, UserMessage,
    message::Reasoning,
    testing::{ScriptedModel, Turn},
};
use agent_llm::{
    AnthropicCodec, AnthropicProfile, Codec, GeminiCodec, GeminiProfile, OpenAiChatCodec, OpenAiResponsesCodec,
    Profile, conformance::refusals,
};
use agent_middleware::compaction::{
    CacheAware, ClampMessages, ClearToolResults, DedupReads, Keep, OffloadToolResults, SlidingWindow, Strategy,
    Summary, Tiers,
};
use proptest::{
    prelude::{Just, any},
    prop_oneof,
    strategy::Strategy as _,
};
use serde_json::{Value, json};

pub(crate) static CODECS: LazyLock<[Arc<dyn Codec>; 4]> = LazyLock::new(|| {
    let openai = || Profile::compatible("acme", "http://server.test/v1");
    [
        Arc::new(OpenAiChatCodec::new("m", openai()).expect("sound")),
        Arc::new(OpenAiResponsesCodec::new("m", openai()).expect("sound")),
        Arc::new(AnthropicCodec::new("m", AnthropicProfile::compatible("acme", "http://server.test")).expect("sound")),
        Arc::new(GeminiCodec::new("m", GeminiProfile::compatible("acme", "http://server.test/v1beta")).expect("sound")),
    ]
});

/// Returns the repairs that a conversation needs, and the errors of providers that would refuse it.
pub(crate) fn wrong(cx: &RunCx, history: &History) -> Vec<String> {
    let (_, repairs) = History::import(history.iter().cloned());
    let mut wrong: Vec<_> = repairs.iter().map(|repair| format!("{repair:?}")).collect();
    let mut request = ModelRequest::new(cx.clone());
    request.messages = history.clone();
    for codec in CODECS.iter() {
        let refused = refusals(&**codec, &request);
        wrong.extend(refused.into_iter().map(|why| format!("{}: {why}", codec.origin().wire())));
    }
    wrong
}

type Any<T> = proptest::strategy::BoxedStrategy<T>;

fn list<T: std::fmt::Debug + 'static>(of: Any<T>, sizes: std::ops::Range<usize>) -> Any<Vec<T>> {
    proptest::collection::vec(of, sizes).boxed()
}

fn keep() -> Any<Keep> {
    prop_oneof![
        (0usize..6).prop_map(Keep::Iterations),
        (0usize..9).prop_map(Keep::Messages),
        (0usize..4).prop_map(Keep::UserRounds),
        (0u64..300).prop_map(Keep::Tokens),
    ]
    .boxed()
}

/// A summariser that fails from some call on.
fn summary() -> Any<Arc<dyn Strategy>> {
    let of = (keep(), 0usize..9, 50u64..400).prop_map(|(keep, works, input)| {
        let model = ScriptedModel::new((0..works).map(|_| Turn::text("notes")));
        Arc::new(Summary::new(model).keep(keep).input_tokens(input).fallback_tokens(60)) as Arc<dyn Strategy>
    });
    of.boxed()
}

fn one() -> Any<Arc<dyn Strategy>> {
    prop_oneof![
        keep().prop_map(|keep| Arc::new(SlidingWindow::keeping(keep)) as Arc<dyn Strategy>),
        keep().prop_map(|keep| Arc::new(ClearToolResults::new().keep(keep)) as Arc<dyn Strategy>),
        keep().prop_map(|keep| Arc::new(OffloadToolResults::new().keep(keep).over(20).preview(5)) as Arc<dyn Strategy>),
        (0usize..40, 0usize..40).prop_map(|(a, b)| Arc::new(ClampMessages::new().to(a, b)) as Arc<dyn Strategy>),
        Just(Arc::new(DedupReads::new()) as Arc<dyn Strategy>),
        Just(Arc::new(CacheAware::default()) as Arc<dyn Strategy>),
        summary(),
    ]
    .boxed()
}

/// Every strategy, and cascades of them.
pub(crate) fn strategy() -> Any<Arc<dyn Strategy>> {
    let tiers = list(one(), 1..4)
        .prop_map(|tiers| Arc::new(tiers.into_iter().fold(Tiers::new(), Tiers::then)) as Arc<dyn Strategy>);
    prop_oneof![3 => one(), 1 => tiers].boxed()
}

fn words() -> Any<String> {
    "[a-z]{1,12}( [a-z]{1,12}){0,30}".boxed()
}

/// Text, and possibly a picture or a document.
fn parts() -> Any<Vec<Part>> {
    let media = |kind| {
        let inline = |mime| Media::base64("aGk=", mime);
        match kind {
            0 => Some(Part::Image(inline("image/png"))),
            1 => Some(Part::Document(inline("application/pdf"))),
            2 => Some(Part::Image(Media::url("https://example.org/cat.png"))),
            _ => None,
        }
    };
    (words(), 0..9)
        .prop_map(move |(text, kind)| [Some(Part::text(text)), media(kind)].into_iter().flatten().collect())
        .boxed()
}

/// Returns the message with an answer to each of its calls.
fn answered(message: AssistantMessage, results: &[(Vec<Part>, bool)]) -> Vec<Message> {
    let answers = message.calls().zip(results).map(|(call, (parts, failed))| {
        Message::Tool(ToolMessage::new(call.id.clone(), call.name.clone(), Arc::new(parts.clone()), *failed))
    });
    let answers: Vec<_> = answers.collect();
    std::iter::once(Message::Assistant(message)).chain(answers).collect()
}

/// Returns a model message in this framework's own format: possibly reasoning, possibly text, and
/// calls.
fn own(thinks: bool, said: Option<String>, results: &[(Vec<Part>, bool)]) -> Vec<Message> {
    let thought = thinks.then(|| {
        let signature = Some("signed".to_owned());
        Block::Reasoning(Reasoning { text: "hm".into(), signature, ..Reasoning::default() })
    });
    let calls = (0..results.len()).map(|n| Block::tool_call(format!("c{n}"), "look", r#"{"a":1}"#));
    let said = said.or_else(|| results.is_empty().then(|| "Well.".to_owned()));
    answered(AssistantMessage::new(thought.into_iter().chain(said.map(Block::text)).chain(calls).collect()), results)
}

/// Returns a provider's response in its wire format, including its server-side tools: stored
/// unchanged.
fn provided(wire: usize, said: &str, results: &[(Vec<Part>, bool)]) -> Vec<Message> {
    let with_calls = |first: Value, of: fn(usize) -> Value| {
        let calls = (0..results.len()).map(of);
        first.as_array().into_iter().flatten().cloned().chain(calls).collect::<Vec<_>>()
    };
    let body = match wire {
        0 => {
            let calls = with_calls(json!([]), |n| {
                let function = json!({"name": "look", "arguments": r#"{"a":1}"#});
                json!({"id": format!("c{n}"), "type": "function", "function": function})
            });
            let message = json!({"role": "assistant", "content": said, "reasoning_content": "hm", "tool_calls": calls});
            json!({"id": "r", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
        }
        1 => {
            let first = json!([
                {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"},
                {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": said}},
                {"type": "message", "id": "m", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": said, "annotations": []}]},
            ]);
            let output = with_calls(first, |n| {
                json!({"type": "function_call", "id": format!("fc{n}"), "call_id": format!("c{n}"), "name": "look",
                       "arguments": r#"{"a":1}"#, "status": "completed"})
            });
            json!({"id": "r", "status": "completed", "output": output})
        }
        2 => {
            let first = json!([
                {"type": "thinking", "thinking": "hm", "signature": "signed"},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": said}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                {"type": "text", "text": said},
            ]);
            let content = with_calls(
                first,
                |n| json!({"type": "tool_use", "id": format!("c{n}"), "name": "look", "input": {"a": 1}}),
            );
            let used = json!({"input_tokens": 1, "output_tokens": 1});
            json!({"id": "r", "type": "message", "role": "assistant", "model": "m", "content": content,
                   "stop_reason": "tool_use", "usage": used})
        }
        _ => {
            let first = json!([
                {"text": "hm", "thought": true, "thoughtSignature": "signed"},
                {"executableCode": {"language": "PYTHON", "code": "1"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"text": said},
            ]);
            let parts = with_calls(first, |_| json!({"functionCall": {"name": "look", "args": {"a": 1}}}));
            json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": parts}}]})
        }
    };
    let read = CODECS[wire].decode(body.to_string().as_bytes()).expect("an answer of this wire");
    assert_eq!(read.message.calls().count(), results.len());
    answered(read.message, results)
}

/// A turn of a user, or of the model, with or without calls.
fn turn() -> Any<Vec<Message>> {
    let results = || list((parts(), any::<bool>()).boxed(), 0..4);
    prop_oneof![
        4 => parts().prop_map(|parts| vec![Message::User(UserMessage::new(parts))]),
        6 => (any::<bool>(), proptest::option::of(words()), results()).prop_map(|(thinks, said, results)| own(thinks, said, &results)),
        4 => (0usize..4, words(), results()).prop_map(|(wire, said, results)| provided(wire, &said, &results)),
        1 => words().prop_map(|text| vec![Message::system(text)]),
    ]
    .boxed()
}

/// Turns; the first is a user's.
pub(crate) fn turns() -> Any<Vec<Vec<Message>>> {
    let first = parts().prop_map(|parts| vec![Message::User(UserMessage::new(parts))]);
    (first, list(turn(), 0..16)).prop_map(|(first, rest)| std::iter::once(first).chain(rest).collect()).boxed()
}
