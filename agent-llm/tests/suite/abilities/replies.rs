//! Results of provider-side tools, and citations.

use agent_core::{
    FinishReason, History, Message, Part, ToolMessage,
    message::{Media, SourcePlace},
};
use agent_llm::{
    AnthropicCodec, AnthropicProfile, Codec, GeminiCodec, GeminiProfile, OpenAiChatCodec, OpenAiResponsesCodec, Profile,
};
use serde_json::{Value, json};

use super::question;

fn claude() -> AnthropicCodec {
    AnthropicCodec::new("claude-opus-4-6", AnthropicProfile::compatible("anthropic", "https://a.test"))
        .expect("a codec")
}

#[test]
fn a_search_at_anthropic_is_told_and_goes_back_as_it_came() {
    let content = json!([
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "news"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "https://a.test", "title": "A", "encrypted_content": "x"}]},
        {"type": "text", "text": "It rains.", "citations": [{"type": "web_search_result_location", "url": "https://a.test", "title": "A", "cited_text": "rain", "encrypted_index": "y"}]},
        {"type": "text", "text": "So it says.", "citations": [{"type": "page_location", "cited_text": "rain", "document_index": 1, "document_title": "B", "start_page_number": 2, "end_page_number": 3}]},
    ]);
    let answer = json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "pause_turn"});
    let answer = claude().decode(answer.to_string().as_bytes()).expect("an answer");
    assert_eq!(answer.finish, FinishReason::Paused);
    let calls: Vec<_> = answer.message.server_calls().collect();
    assert_eq!(
        (&*calls[0].id, &*calls[0].name, calls[0].input.as_deref()),
        ("s1", "web_search", Some(r#"{"query":"news"}"#))
    );
    assert_eq!((&*calls[1].id, &*calls[1].name, calls[1].failed), ("s1", "web_search", false));
    assert!(calls[1].output.as_deref().is_some_and(|said| said.contains("https://a.test")) && calls[1].input.is_none());
    let cited: Vec<_> = answer.message.citations().collect();
    assert_eq!((cited[0].url.as_deref(), cited[0].quote.as_deref()), (Some("https://a.test"), Some("rain")));
    assert_eq!((cited[1].document, cited[1].place), (Some(1), Some(SourcePlace::Pages(2, 3))));

    let (_run, mut req) = question();
    req.messages.push(Message::Assistant(answer.message)).expect("a turn");
    let sent: Value = serde_json::from_slice(claude().encode(&req).expect("it is said").body()).expect("JSON");
    assert_eq!(sent["messages"][1]["content"], content);
    let chat = OpenAiChatCodec::new("gpt-5", Profile::openai()).expect("a codec");
    let elsewhere = chat.encode(&req).expect("it is said");
    assert!(!String::from_utf8_lossy(elsewhere.body()).contains("server_tool_use"), "nobody else is shown it");
}

#[test]
fn a_tool_at_anthropic_that_failed_says_so() {
    let content = json!([{"type": "bash_code_execution_tool_result", "tool_use_id": "s1",
        "content": {"type": "bash_code_execution_tool_result_error", "error_code": "unavailable"}}]);
    let answer = json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"});
    let answer = claude().decode(answer.to_string().as_bytes()).expect("an answer");
    let call = answer.message.server_calls().next().expect("a result");
    assert_eq!((&*call.name, call.failed), ("bash_code_execution", true));
}

#[test]
fn tools_of_openai_are_told_with_their_results() {
    let codec = OpenAiResponsesCodec::new("gpt-5", Profile::openai()).expect("a codec");
    let output = json!([
        {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "news"}},
        {"type": "code_interpreter_call", "id": "c1", "status": "completed", "code": "1+1", "container_id": "k", "outputs": [{"type": "logs", "logs": "2"}]},
        {"type": "mcp_call", "id": "m1", "name": "ask", "server_label": "wiki", "arguments": "{\"q\":1}", "output": "yes", "error": null},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ja. é so.", "annotations": [
            {"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 4, "end_index": 9},
            {"type": "file_citation", "file_id": "f1", "filename": "b.pdf", "index": 3}]}]},
    ]);
    let answer = json!({"id": "r1", "object": "response", "status": "completed", "output": output});
    let answer = codec.decode(answer.to_string().as_bytes()).expect("an answer");
    let calls: Vec<_> = answer.message.server_calls().collect();
    assert_eq!(
        (&*calls[0].name, calls[0].input.as_deref().is_some_and(|said| said.contains("news"))),
        ("web_search", true)
    );
    assert_eq!(
        (calls[1].input.as_deref(), calls[1].output.as_deref()),
        (Some("1+1"), Some(r#"[{"logs":"2","type":"logs"}]"#))
    );
    assert_eq!(
        (&*calls[2].name, calls[2].server.as_deref(), calls[2].output.as_deref()),
        ("ask", Some("wiki"), Some("yes"))
    );
    let cited: Vec<_> = answer.message.citations().collect();
    let bytes = cited[0].bytes.clone().expect("a place");
    assert_eq!(&answer.message.text()[bytes], "é so.", "characters are counted, not bytes");
    assert_eq!((cited[1].file.as_deref(), cited[1].title.as_deref()), (Some("f1"), Some("b.pdf")));
}

#[test]
fn a_call_to_use_a_computer_is_a_call_and_its_result_the_screen() {
    let codec = OpenAiResponsesCodec::new("gpt-5", Profile::openai()).expect("a codec");
    let call = json!({"type": "computer_call", "id": "i1", "call_id": "c1", "status": "completed",
        "actions": [{"type": "screenshot"}], "pending_safety_checks": []});
    let answer = json!({"id": "r1", "object": "response", "status": "completed", "output": [call]});
    let answer = codec.decode(answer.to_string().as_bytes()).expect("an answer");
    let asked = answer.message.calls().next().expect("a call");
    assert_eq!((&*asked.name, asked.arguments.as_str()), ("computer", r#"{"actions":[{"type":"screenshot"}]}"#));
    let screen = vec![Part::Image(Media::base64("AAAA", "image/png"))];
    let result = ToolMessage::new("c1", "computer", screen.into(), false);
    let (_run, mut req) = question();
    req.messages =
        History::import([Message::user("Look."), Message::Assistant(answer.message), Message::Tool(result)]).0;
    let sent: Value = serde_json::from_slice(codec.encode(&req).expect("it is said").body()).expect("JSON");
    assert_eq!(sent["input"][1], call);
    let output = json!({"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"});
    assert_eq!(sent["input"][2], json!({"type": "computer_call_output", "call_id": "c1", "output": output}));
}

#[test]
fn programs_that_gemini_ran_are_told_with_their_output_and_words_with_their_place() {
    let codec =
        GeminiCodec::new("gemini-3-pro", GeminiProfile::compatible("gemini", "https://g.test")).expect("a codec");
    let parts = json!([
        {"executableCode": {"language": "PYTHON", "code": "print(2)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}},
        {"text": "Es regnet. It rains."},
    ]);
    let grounding = json!({"groundingChunks": [{"web": {"uri": "https://a.test", "title": "A"}}],
        "groundingSupports": [{"segment": {"text": "It rains."}, "groundingChunkIndices": [0]}]});
    let answer = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "groundingMetadata": grounding}]});
    let answer = codec.decode(answer.to_string().as_bytes()).expect("an answer");
    let calls: Vec<_> = answer.message.server_calls().collect();
    assert_eq!((calls[0].input.as_deref(), calls[0].output.as_deref()), (Some("print(2)"), None));
    assert_eq!((calls[1].output.as_deref(), calls[1].failed), (Some("no"), true));
    let bytes = answer.message.citations().next().and_then(|cited| cited.bytes.clone()).expect("a place");
    assert_eq!(&answer.message.text()[bytes], "It rains.");
}

#[test]
fn pages_that_stand_beside_an_answer_are_citations_of_its_text() {
    let codec = OpenAiChatCodec::new("sonar", Profile::named("perplexity").expect("known")).expect("a codec");
    let choice = json!({"index": 0, "message": {"role": "assistant", "content": "Rain [1]."}, "finish_reason": "stop"});
    let answer = json!({"id": "r1", "choices": [choice], "citations": ["https://a.test"],
        "search_results": [{"title": "A", "url": "https://a.test", "snippet": "rain"}]});
    let answer = codec.decode(answer.to_string().as_bytes()).expect("an answer");
    let cited: Vec<_> = answer.message.citations().collect();
    assert_eq!((cited.len(), cited[0].title.as_deref(), cited[0].quote.as_deref()), (1, Some("A"), Some("rain")));
}
