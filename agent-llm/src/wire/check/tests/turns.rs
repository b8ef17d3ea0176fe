//! Order and content of messages.

use super::*;

#[test]
fn servers_that_insist_on_turns_are_given_turns() {
    let roles = |codec: &OpenAiChatCodec, req: &ModelRequest| {
        let body = body(codec, req);
        let messages = body["messages"].as_array().expect("messages").clone();
        messages.iter().map(|message| message["role"].as_str().expect("a role").to_owned()).collect::<Vec<_>>()
    };
    let twice = request([Message::user("a"), Message::user("b")]);
    assert_eq!(roles(&of_dialect(Dialect::Alternating), &twice), ["user"]);
    assert_eq!(roles(&chat(), &twice), ["user", "user"]);
    let joined = body(&of_dialect(Dialect::Alternating), &twice)["messages"][0]["content"].clone();
    assert_eq!(joined, "a\nb");
    let failed = request([Message::user("a")].into_iter().chain(turn("c1", "look", "r")).chain([Message::user("b")]));
    assert_eq!(roles(&of_dialect(Dialect::Mistral), &failed), ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(roles(&chat(), &failed), ["user", "assistant", "tool", "user"]);
}

#[test]
fn a_conversation_begins_with_a_user_message_where_the_server_insists_on_it() {
    let req = request(turn("c1", "look", "r"));
    assert_eq!(body(&converse(), &req)["messages"][0]["role"], "user");
    assert_eq!(body(&anthropic(), &req)["messages"][0]["role"], "assistant");
}

#[test]
fn a_message_with_calls_has_reasoning_where_the_server_insists_on_it() {
    let req = request([Message::user("a")].into_iter().chain(turn("c1", "look", "r")));
    for (dialect, said) in [(Dialect::Moonshot, true), (Dialect::Deepseek, true), (Dialect::Openai, false)] {
        let message = body(&of_dialect(dialect), &req)["messages"][1].clone();
        assert_eq!(message["reasoning_content"].is_string(), said, "{dialect:?}");
    }
}

#[test]
fn reasoning_is_required_only_where_the_model_thinks() {
    let deepseek = |model: &str, thinking: Option<&str>| {
        let mut profile = openai();
        profile.dialect = Dialect::Deepseek;
        let codec = OpenAiChatCodec::new(model, profile).expect("a codec");
        let mut req = request([Message::user("a")].into_iter().chain(turn("c1", "look", "r")));
        if let Some(kind) = thinking {
            let params = std::sync::Arc::make_mut(&mut req.params);
            params.extra.insert("thinking".into(), json!({"type": kind}));
        }
        body(&codec, &req)["messages"][1]["reasoning_content"].is_string()
    };
    assert!(deepseek("deepseek-v4-flash", None));
    assert!(!deepseek("deepseek-v4-flash", Some("disabled")));
    assert!(!deepseek("deepseek-chat", None));
    assert!(deepseek("deepseek-chat", Some("enabled")));
}

#[test]
fn an_own_message_without_reasoning_gets_some_once_the_model_thinks() {
    let codec = of_dialect(Dialect::Deepseek);
    let own = codec.decode(br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#);
    let own = Message::Assistant(own.expect("an answer").message);
    let result = Message::Tool(ToolMessage::text("c1", "look", "r", false));
    let message = body(&codec, &request([Message::user("a"), own, result]))["messages"][1].clone();
    assert!(message["reasoning_content"].is_string(), "{message}");
}

#[test]
fn roles_alternate_for_models_whose_chat_template_requires_it() {
    let twice = request([Message::user("a"), Message::user("b")]);
    for (model, count) in [("mistral-7b", 1), ("google/gemma-3-4b-it", 1), ("Qwen3-1.7B-Q4_K_M", 2)] {
        let mut profile = openai();
        profile.dialect = Dialect::ChatTemplate;
        let codec = OpenAiChatCodec::new(model, profile).expect("a codec");
        assert_eq!(body(&codec, &twice)["messages"].as_array().map(Vec::len), Some(count), "{model}");
    }
}

#[test]
fn thinking_between_tags_is_sent_back_after_an_edit_that_keeps_it() {
    let mut profile = openai();
    profile.thinking_tags = true;
    let codec = OpenAiChatCodec::new("m", profile).expect("a codec");
    let text = "<think>hm</think>\n\nFour.";
    let json =
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]});
    let own = codec.decode(json.to_string().as_bytes()).expect("an answer").message;
    let sent_back = |message: AssistantMessage| {
        let req = request([Message::user("a"), Message::Assistant(message), Message::user("b")]);
        body(&codec, &req)["messages"][1]["content"].clone()
    };
    let mut edited = own.clone();
    edited.blocks_mut();
    assert_eq!((sent_back(own.clone()), sent_back(edited)), (json!(text), json!(text)));
    let mut changed = own;
    *changed.blocks_mut() = vec![Block::reasoning("hm"), Block::text("Five.")];
    assert_eq!(sent_back(changed), "Five.");
}

#[test]
fn converse_has_tools_wherever_a_conversation_has_calls() {
    let req = request([Message::user("a")].into_iter().chain(turn("c1", "look", "r")));
    let said = body(&converse(), &req)["toolConfig"]["tools"][0]["toolSpec"]["name"].clone();
    assert_eq!(said, "look");
    assert_eq!(body(&converse(), &request([Message::user("a")])).get("toolConfig"), None);
}

#[test]
fn a_claude_does_not_think_in_a_turn_that_another_model_began() {
    let ask = |messages: Vec<Message>| {
        let mut req = request(messages);
        let params = std::sync::Arc::make_mut(&mut req.params);
        params.effort = Some(Effort::High);
        body(&anthropic(), &req)["thinking"]["type"].clone()
    };
    let begun: Vec<_> = [Message::user("a")].into_iter().chain(turn("c1", "look", "r")).collect();
    assert_eq!(ask(begun.clone()), Value::Null);
    assert_eq!(ask([begun, vec![Message::assistant("done"), Message::user("b")]].concat()), "enabled");
    let thinking = r#"{"type":"thinking","thinking":"hm","signature":"s"}"#;
    let call = r#"{"type":"tool_use","id":"c1","name":"look","input":{}}"#;
    let json = format!(
        r#"{{"id":"m","type":"message","role":"assistant","model":"m","content":[{thinking},{call}],"stop_reason":"tool_use"}}"#
    );
    let own = anthropic().decode(json.as_bytes()).expect("an answer").message;
    let result = Message::Tool(ToolMessage::text("c1", "look", "r", false));
    assert_eq!(ask(vec![Message::user("a"), Message::Assistant(own), result]), "enabled");
}
