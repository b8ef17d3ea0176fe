//! Target models.

use agent::{
    Result,
    llm::{
        AnthropicCodec, AnthropicProfile, BedrockCodec, BedrockProfile, Codec, CohereCodec, CohereProfile, GeminiCodec,
        GeminiProfile, OpenAiChatCodec, OpenAiResponsesCodec, Profile, RequestReader,
    },
};

use crate::recordings::{Exchange, Wire};

/// Wire, and its codec for one model.
pub(super) type Target = (&'static str, Box<dyn Codec>);

const BEDROCK: &str = "https://bedrock-runtime.us-east-1.amazonaws.com";

/// Returns one model per wire, at the provider that defined it.
pub(super) fn usual() -> Result<Vec<Target>> {
    Ok(vec![
        ("openai-chat", Box::new(OpenAiChatCodec::new("gpt-5-mini", Profile::openai())?)),
        ("openai-responses", Box::new(OpenAiResponsesCodec::new("gpt-5-mini", Profile::openai())?)),
        ("anthropic-messages", anthropic("claude-sonnet-4-5")?),
        ("gemini-generate", gemini("gemini-2.5-pro")?),
        ("cohere-chat", cohere()?),
        ("bedrock-converse", bedrock("us.anthropic.claude-sonnet-4-5-20250929-v1:0")?),
    ])
}

/// Returns [`usual`], and the models whose requests differ in form.
pub(super) fn all() -> Result<Vec<Target>> {
    let mut all = usual()?;
    all.push(("anthropic-messages", anthropic("claude-opus-5")?));
    all.push(("gemini-generate", gemini("gemini-3-pro-preview")?));
    all.push(("bedrock-converse", bedrock("us.amazon.nova-pro-v1:0")?));
    all.push(("bedrock-converse", bedrock("us.anthropic.claude-opus-4-6-v1")?));
    Ok(all)
}

/// Returns the codec for an exchange, with the provider table's settings.
pub(super) fn of(exchange: &Exchange, wire: &dyn Wire) -> Result<Box<dyn RequestReader>> {
    let Ok(mut profile) = Profile::named(&exchange.provider) else { return wire.codec(exchange) };
    profile.base_url = "http://server.test/v1".into();
    match wire.api() {
        "openai-chat" => Ok(Box::new(OpenAiChatCodec::new(exchange.model(), profile)?)),
        "openai-responses" => Ok(Box::new(OpenAiResponsesCodec::new(exchange.model(), profile)?)),
        _ => wire.codec(exchange),
    }
}

fn anthropic(model: &str) -> Result<Box<dyn Codec>> {
    Ok(Box::new(AnthropicCodec::new(model, AnthropicProfile::anthropic())?))
}

fn gemini(model: &str) -> Result<Box<dyn Codec>> {
    Ok(Box::new(GeminiCodec::new(model, GeminiProfile::ai_studio())?))
}

fn cohere() -> Result<Box<dyn Codec>> {
    let profile = CohereProfile::compatible("cohere", "https://api.cohere.com/v2");
    Ok(Box::new(CohereCodec::new("command-a-03-2025", profile)?))
}

fn bedrock(model: &str) -> Result<Box<dyn Codec>> {
    Ok(Box::new(BedrockCodec::new(model, BedrockProfile::compatible("bedrock", BEDROCK))?))
}
