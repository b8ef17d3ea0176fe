//! Images and audio, files by id, and thinking budgets.

use agent_core::{
    Block, ErrorKind, Media, Message, ModelParams, Part, ToolChoice, ToolSpec, UserMessage,
    model::{Effort, Modality, Voice},
};
use agent_llm::{
    AnthropicCodec, AnthropicProfile, BedrockCodec, Codec, GeminiCodec, GeminiProfile, OpenAiChatCodec,
    OpenAiResponsesCodec, Profile, Providers,
};
use serde_json::{Value, json};

use super::question;

fn chat() -> OpenAiChatCodec {
    OpenAiChatCodec::new("gpt-audio", Profile::openai()).expect("a codec")
}

fn claude(model: &str) -> AnthropicCodec {
    AnthropicCodec::new(model, AnthropicProfile::compatible("anthropic", "https://a.test")).expect("a codec")
}

fn gemini(model: &str) -> GeminiCodec {
    GeminiCodec::new(model, GeminiProfile::compatible("gemini", "https://g.test")).expect("a codec")
}

fn told(codec: &dyn Codec, params: ModelParams) -> agent_core::Result<Value> {
    let (_run, mut req) = question();
    req.params = params.into();
    Ok(serde_json::from_slice(codec.encode(&req)?.body()).expect("JSON"))
}

#[test]
fn images_and_speech_are_asked_for_or_refused() {
    let speech = || ModelParams::default().modalities([Modality::Text, Modality::Audio]).voice(Voice::new("alloy"));
    let sent = told(&chat(), speech()).expect("it is said");
    assert_eq!(
        (&sent["modalities"], &sent["audio"]),
        (&json!(["text", "audio"]), &json!({"voice": "alloy", "format": "wav"}))
    );
    let (_run, mut req) = question();
    (req.params, req.stream) = (speech().into(), true);
    let sent: Value = serde_json::from_slice(chat().encode(&req).expect("it is said").body()).expect("JSON");
    assert_eq!(sent["audio"]["format"], "pcm16", "what else is streamed");
    let mp3 = speech().voice(Voice::new("alloy").format("mp3"));
    assert!(told(&gemini("gemini-2.5-flash"), mp3).is_err(), "it takes no format");
    let sent = told(&gemini("gemini-2.5-flash"), speech()).expect("it is said");
    let voice = json!({"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "alloy"}}});
    assert_eq!(sent["generationConfig"], json!({"responseModalities": ["TEXT", "AUDIO"], "speechConfig": voice}));
    let responses = OpenAiResponsesCodec::new("gpt-5", Profile::openai()).expect("a codec");
    for codec in [&responses as &dyn Codec, &claude("claude-opus-4-6")] {
        let error = told(codec, speech()).expect_err("it has no words for it");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    }
    assert!(told(&chat(), ModelParams::default().modalities([Modality::Audio])).is_err(), "whose voice?");
}

#[test]
fn a_spoken_answer_is_its_words_and_its_sound_and_goes_back_by_its_id() {
    // Two pieces, each with its own padding.
    let audio = json!({"id": "a1", "data": "UklGRg==V0FWRQ==", "transcript": "Hello.", "expires_at": 1});
    let message = json!({"role": "assistant", "content": null, "audio": audio});
    let answer = json!({"id": "r1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let answer = chat().decode(answer.to_string().as_bytes()).expect("an answer");
    assert_eq!(answer.message.text(), "Hello.");
    let sound = Block::Document(Media::base64("UklGRldBVkU=", "audio/wav"));
    assert_eq!(answer.message.blocks().last(), Some(&sound));
    let (_run, mut req) = question();
    req.messages.push(Message::Assistant(answer.message)).expect("a turn");
    let sent: Value = serde_json::from_slice(chat().encode(&req).expect("it is said").body()).expect("JSON");
    assert_eq!(sent["messages"][1], json!({"role": "assistant", "audio": {"id": "a1"}}));
}

#[test]
fn sound_goes_in_as_sound_and_a_file_by_its_id_with_the_beta_that_it_needs() {
    let (_run, mut req) = question();
    let parts = vec![Part::Document(Media::base64("AAAA", "audio/mpeg")), Part::Document(Media::file("f1"))];
    req.messages.push(Message::User(UserMessage::new(parts))).expect("a user may speak");
    let sent: Value = serde_json::from_slice(chat().encode(&req).expect("it is said").body()).expect("JSON");
    assert_eq!(
        sent["messages"][1]["content"],
        json!([
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
            {"type": "file", "file": {"file_id": "f1"}},
        ])
    );
    let (_run, mut req) = question();
    assert!(claude("claude-opus-4-6").encode(&req).expect("it is said").headers().get("anthropic-beta").is_none());
    req.messages.push(Message::User(UserMessage::new(vec![Part::Image(Media::file("f1"))]))).expect("a user may speak");
    let sent = claude("claude-opus-4-6").encode(&req).expect("it is said");
    assert_eq!(sent.headers()["anthropic-beta"], "files-api-2025-04-14");
}

#[test]
fn an_effort_is_one_word_and_a_number_is_for_those_who_are_told_one() {
    let effort = |codec: &dyn Codec, effort| told(codec, ModelParams::default().effort(effort)).expect("it is said");
    assert_eq!(effort(&chat(), Effort::XHigh)["reasoning_effort"], "xhigh");
    let plain = OpenAiChatCodec::new("m", Profile::compatible("acme", "https://o.test/v1")).expect("a codec");
    assert_eq!(effort(&plain, Effort::Max)["reasoning_effort"], "high", "it knows nothing above");
    assert_eq!(effort(&claude("claude-opus-4-6"), Effort::Max)["output_config"], json!({"effort": "max"}));
    assert_eq!(effort(&claude("claude-haiku-4-5"), Effort::Max)["thinking"]["budget_tokens"], 28_000);

    let number = |codec: &dyn Codec, most| told(codec, ModelParams::default().thinking_tokens(most));
    assert_eq!(number(&claude("claude-haiku-4-5"), 2_000).expect("said")["thinking"]["budget_tokens"], 2_000);
    let profile = Providers::builtin().find("bedrock").expect("known").clone().with("region", "eu-west-1").bedrock;
    let bedrock =
        BedrockCodec::new("anthropic.claude-haiku-4-5", profile.expect("it speaks Converse")).expect("a codec");
    let fields = number(&bedrock, 2_000).expect("said")["additionalModelRequestFields"].take();
    assert_eq!(fields, json!({"thinking": {"type": "enabled", "budget_tokens": 2_000}}));
    assert!(number(&bedrock, 100).is_err() && number(&bedrock, 64_000).is_err());
    let (_run, mut req) = question();
    req.tools = [ToolSpec::new("look", "", json!({"type": "object"}))].into_iter().collect();
    req.params = ModelParams::default().thinking_tokens(2_000).tool_choice(ToolChoice::Required).into();
    let sent: Value = serde_json::from_slice(bedrock.encode(&req).expect("said").body()).expect("JSON");
    assert_eq!(sent.get("additionalModelRequestFields"), None, "no tool is forced on a model that thinks");
    let thinking = &number(&gemini("gemini-2.5-flash"), 2_000).expect("said")["generationConfig"]["thinkingConfig"];
    assert_eq!(thinking["thinkingBudget"], 2_000);
    let router = OpenAiChatCodec::new("m", Profile::named("openrouter").expect("known")).expect("a codec");
    assert_eq!(number(&router, 2_000).expect("said")["reasoning"], json!({"max_tokens": 2_000}));
    for codec in [&chat() as &dyn Codec, &claude("claude-opus-4-6"), &gemini("gemini-3-pro")] {
        assert!(number(codec, 2_000).expect_err("it is told a word").message().contains("effort"));
    }
    assert!(number(&claude("claude-haiku-4-5"), 100).is_err(), "the API takes no less than 1,024");
}
