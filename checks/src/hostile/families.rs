//! Families of providers, with their documented rules.

use agent::{
    Result,
    llm::{
        AnthropicCodec, AnthropicEnvelope, AnthropicProfile, BedrockCodec, BedrockProfile, Codec, CohereCodec,
        CohereProfile, GeminiCodec, GeminiProfile, OllamaCodec, OllamaProfile, OpenAiChatCodec, OpenAiResponsesCodec,
        Profile,
    },
};
use serde_json::Value;

use super::rules::{self, Call};

/// A family of providers.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) codec: Box<dyn Codec>,
    /// Lists the calls of a request, with the ids of their results.
    pub(super) calls: fn(&Value) -> Vec<Call>,
    /// Lists the names and schemas of tools on offer.
    pub(super) tools: fn(&Value) -> Vec<(String, Value)>,
    /// Lists the broken rules of this family.
    pub(super) rules: fn(&Value) -> Vec<String>,
}

/// Returns all families.
pub(super) fn families() -> Result<Vec<Family>> {
    let chat = |name, model: &str, profile: &str, rules| -> Result<Family> {
        let codec = OpenAiChatCodec::new(model, Profile::named(profile)?)?;
        Ok(Family { name, codec: Box::new(codec), calls: rules::chat_calls, tools: rules::chat_tools, rules })
    };
    let claude = |name, codec: AnthropicCodec| Family {
        name,
        codec: Box::new(codec),
        calls: rules::messages_calls,
        tools: |body| rules::named(&body["tools"], "/name", "/input_schema"),
        rules: rules::messages,
    };
    let bedrock = "https://bedrock-runtime.us-east-1.amazonaws.com";
    let mut invoke = AnthropicProfile::compatible("bedrock", bedrock);
    invoke.envelope = AnthropicEnvelope::Bedrock;
    Ok(vec![
        chat("openai-chat", "gpt-5-mini", "openai", rules::openai_chat)?,
        chat("mistral-chat", "mistral-large-latest", "mistral", rules::mistral_chat)?,
        chat("deepseek-chat", "deepseek-reasoner", "deepseek", rules::deepseek_chat)?,
        Family {
            name: "openai-responses",
            codec: Box::new(OpenAiResponsesCodec::new("gpt-5-mini", Profile::openai())?),
            calls: rules::responses_calls,
            tools: |body| rules::named(&body["tools"], "/name", "/parameters"),
            rules: rules::responses,
        },
        claude("anthropic-messages", AnthropicCodec::new("claude-sonnet-4-5", AnthropicProfile::anthropic())?),
        Family {
            name: "gemini-generate",
            codec: Box::new(GeminiCodec::new("gemini-2.5-pro", GeminiProfile::ai_studio())?),
            calls: rules::gemini_calls,
            tools: rules::gemini_tools,
            rules: rules::gemini,
        },
        Family {
            name: "bedrock-converse",
            codec: Box::new(BedrockCodec::new(
                "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                BedrockProfile::compatible("bedrock", bedrock),
            )?),
            calls: rules::converse_calls,
            tools: |body| rules::named(&body["toolConfig"]["tools"], "/toolSpec/name", "/toolSpec/inputSchema/json"),
            rules: rules::converse,
        },
        Family {
            name: "cohere-chat",
            codec: Box::new(CohereCodec::new(
                "command-a-03-2025",
                CohereProfile::compatible("cohere", "https://api.cohere.com/v2"),
            )?),
            calls: rules::chat_calls,
            tools: rules::chat_tools,
            rules: |_| Vec::new(),
        },
        Family {
            name: "ollama-chat",
            codec: Box::new(OllamaCodec::new("qwen3", OllamaProfile::compatible("ollama", "http://localhost:11434"))?),
            calls: rules::ollama_calls,
            tools: rules::chat_tools,
            rules: |_| Vec::new(),
        },
        claude("bedrock-invoke", AnthropicCodec::new("anthropic.claude-sonnet-4-5-20250929-v1:0", invoke)?),
    ])
}
