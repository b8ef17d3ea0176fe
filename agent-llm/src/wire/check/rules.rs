//! Rules of providers, as data. Each rule states its source and the date on which it held.

use agent_core::{ModelRequest, model::Effort};

use super::sizes::Kind;
use crate::wire::profile::{Dialect, Profile};

/// Restrictions of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::wire) struct Rules {
    pub(super) ids: IdRule,
    pub(super) media: MediaRules,
    pub(super) turns: TurnRules,
    pub(super) tools: ToolRules,
}

/// Restrictions on call ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct IdRule {
    pub(super) length: Length,
    /// Only letters, digits, `_` and `-` are allowed.
    pub(super) plain: bool,
    /// True if ids in the provider's own messages are checked, too.
    pub(super) own: bool,
    /// Ids must be unique within a request.
    pub(super) unique: bool,
}

/// Length of an id, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Length {
    Any,
    Most(usize),
    Exactly(usize),
}

/// Restrictions on images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MediaRules {
    pub(super) images: &'static [Kind],
    /// Maximum length of an image's longer side, in pixels.
    pub(super) side: Option<u32>,
    /// With more images than this, the maximum length of each image's longer side, in pixels.
    pub(super) many: Option<(usize, u32)>,
    /// Maximum size of an image, in base64 characters.
    pub(super) bytes: Option<usize>,
    /// Maximum number of images per request.
    pub(super) count: Option<usize>,
}

/// Restrictions on the order and content of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::wire) struct TurnRules {
    /// Handling of blank texts of the assistant.
    pub(super) blanks: Blanks,
    /// User and assistant messages must alternate.
    pub(super) alternate: bool,
    /// The first message must be a user's.
    pub(super) user_first: bool,
    /// An answer is required between results and the next user message.
    pub(in crate::wire) answer_after_results: bool,
    /// A conversation with calls requires tools on offer.
    pub(super) tools_with_calls: bool,
    /// Requirement of `reasoning_content` in messages with calls.
    pub(super) reasoning: Reasoning,
    /// Results may contain server-specific parts, which a user message may not.
    pub(in crate::wire) own_parts_in_results: bool,
}

/// Handling of blank texts of the assistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Blanks {
    Taken,
    /// Rejected unless the message contains another text.
    NotAlone,
    Refused,
}

/// Requirement of `reasoning_content` in messages with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reasoning {
    NotRequired,
    /// Required in requests whose model thinks.
    IfThinking,
    Required,
}

/// Restrictions on tools on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ToolRules {
    pub(super) count: Option<usize>,
    /// Maximum length of a description, in characters.
    pub(super) description: Option<usize>,
    /// The root of a schema requires `properties`, and each array `items`.
    pub(super) complete: bool,
    /// Property keys must match `^[a-zA-Z0-9_.-]{1,64}$`.
    pub(super) plain_keys: bool,
    /// Schemas are reduced to types, properties, items, enumerations and descriptions, without
    /// references.
    pub(super) simple: bool,
}

const COMMON: [Kind; 4] = [Kind::Jpeg, Kind::Png, Kind::Gif, Kind::Webp];

/// Any server: rejections common to all providers, and none that only some have.
const ANY: Rules = Rules {
    ids: IdRule { length: Length::Any, plain: false, own: false, unique: false },
    media: MediaRules { images: &COMMON, side: None, many: None, bytes: None, count: None },
    turns: TurnRules {
        blanks: Blanks::Taken,
        alternate: false,
        user_first: false,
        answer_after_results: false,
        tools_with_calls: false,
        reasoning: Reasoning::NotRequired,
        own_parts_in_results: false,
    },
    tools: ToolRules { count: None, description: None, complete: false, plain_keys: false, simple: false },
};

impl Rules {
    /// Returns the rules of Chat Completions for `model`.
    pub(in crate::wire) fn chat(model: &str, profile: &Profile) -> Self {
        let mut rules = ANY;
        // "string too long. Expected a string with maximum length 40" (`tool_calls[].id` at OpenAI,
        // 2026-05); other servers accept such ids, too.
        rules.ids.length = Length::Most(40);
        match profile.dialect {
            Dialect::Openai => {
                rules.ids.own = true;
                rules.tools = OPENAI_TOOLS;
                rules.media.count = Some(OPENAI_IMAGES);
            }
            // "Unexpected role 'user' after role 'tool'", code 3230 (api.mistral.ai, 2024-06 to
            // 2026-04); mistral-small-latest and ministral-3b-latest accept it by now.
            // Images: at most 8 in a request, of 10 MB each (vision guide, 2025-09).
            Dialect::Mistral => {
                rules.turns.answer_after_results = true;
                rules.media.count = Some(8);
                rules.media.bytes = Some(10_000_000 * 4 / 3);
            }
            // "thinking is enabled but reasoning_content is missing in assistant tool call message"
            // (api.moonshot.ai, 2026-03); "The `reasoning_content` in the thinking mode must be
            // passed back to the API" (api.deepseek.com, 2026-02). Without thinking, DeepSeek
            // accepts such messages (2026-08).
            Dialect::Moonshot | Dialect::Deepseek => rules.turns.reasoning = Reasoning::IfThinking,
            // "conversation roles must alternate user/assistant/user/assistant/..."
            // (api.perplexity.ai, 2026-10).
            Dialect::Alternating => rules.turns.alternate = true,
            // The same in the chat templates of some models; others, such as Qwen's, accept any
            // order (llama.cpp, 2026-08).
            Dialect::ChatTemplate => rules.turns.alternate = has_alternating_template(model),
            Dialect::Compatible => {}
        }
        if let Some(length) = profile.call_id_length {
            rules.ids.length = Length::Exactly(length);
        }
        rules
    }

    /// Returns the rules of Responses.
    pub(in crate::wire) fn responses(profile: &Profile) -> Self {
        let mut rules = ANY;
        // "string too long. Expected a string with maximum length 64" (`input[].call_id` at OpenAI,
        // 2026-05). The same id of two calls: "Duplicate function call id" (2026-09).
        rules.ids = IdRule { length: Length::Most(64), plain: false, own: true, unique: true };
        if profile.dialect == Dialect::Openai {
            rules.tools = OPENAI_TOOLS;
            rules.media.count = Some(OPENAI_IMAGES);
        }
        rules
    }

    /// Returns the rules of Anthropic Messages, on any platform.
    pub(in crate::wire) fn messages() -> Self {
        let mut rules = ANY;
        // `tool_use.id`: "String should match pattern '^[a-zA-Z0-9_-]+$'" (2026-02); "`tool_use`
        // ids must be unique" (2025-12).
        rules.ids = IdRule { length: Length::Most(64), plain: true, own: false, unique: true };
        // Limits of images: vision guide of Claude's documentation (2026-10): 8000 pixels a side,
        // 2000 of more than 20 images, 5 MB in base64, 100 images a request.
        rules.media = MediaRules {
            side: Some(8000),
            many: Some((20, 2000)),
            bytes: Some(5 * 1024 * 1024),
            count: Some(100),
            ..rules.media
        };
        // "text content blocks must contain non-whitespace text" (2026-08).
        rules.turns.blanks = Blanks::NotAlone;
        // "input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
        // (2026-09).
        rules.tools.plain_keys = true;
        rules
    }

    /// Returns the rules of Bedrock's Converse; `is_claude` is true for Anthropic's models.
    pub(in crate::wire) fn converse(is_claude: bool) -> Self {
        let mut rules = if is_claude { Self::messages() } else { ANY };
        if !is_claude {
            // "You can include up to 20 images. Each image's size, height, and width must be no more
            // than 3.75 MB, 8000 px, and 8000 px" (API reference of Message, 2025-10).
            let bytes = Some(5 * 1024 * 1024); // 3.75 MB in base64
            rules.media = MediaRules { side: Some(8000), bytes, count: Some(20), ..rules.media };
        }
        // "toolUseId": `[a-zA-Z0-9_-]+`, at most 64 (API reference, 2026-10).
        rules.ids = IdRule { length: Length::Most(64), plain: true, own: false, unique: true };
        // "The text field in the ContentBlock object is blank" (2026-08).
        rules.turns.blanks = Blanks::Refused;
        // "A conversation must start with a user message" (2026-06). Anthropic's own API accepts any.
        rules.turns.user_first = true;
        // "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        // (2026-07).
        rules.turns.tools_with_calls = true;
        rules
    }

    /// Returns the rules of Gemini's `generateContent`.
    pub(in crate::wire) fn gemini() -> Self {
        let mut rules = ANY;
        // Image understanding (ai.google.dev, 2026-09): HEIC and HEIF, but no GIF.
        rules.media.images = &[Kind::Jpeg, Kind::Png, Kind::Webp, Kind::Gif, Kind::Heic];
        // 3600 images in a request (ai.google.dev, 2025-10).
        rules.media.count = Some(3600);
        rules
    }

    /// Returns the rules of Cohere's Chat.
    pub(in crate::wire) fn cohere() -> Self {
        let mut rules = ANY;
        // Documents are allowed in the content of tools, but not of users (API reference, version
        // 2, 2026-10).
        rules.turns.own_parts_in_results = true;
        rules
    }

    /// Returns the rules of a wire without documented restrictions: Ollama's.
    pub(in crate::wire) fn any() -> Self {
        ANY
    }

    /// Returns the rules that affect the encoding of messages.
    pub(in crate::wire) fn turns(&self) -> TurnRules {
        self.turns
    }

    /// Returns true if messages with calls need `reasoning_content` in this request to `model`.
    pub(in crate::wire) fn needs_reasoning(&self, req: &ModelRequest, model: &str) -> bool {
        match self.turns.reasoning {
            Reasoning::NotRequired => false,
            Reasoning::IfThinking => thinks(req, model),
            Reasoning::Required => true,
        }
    }
}

/// Returns false if the request disables thinking, or the model does not think by default.
fn thinks(req: &ModelRequest, model: &str) -> bool {
    match req.params.extra.get("thinking").map(|thinking| &thinking["type"]) {
        Some(kind) => kind != "disabled",
        None => match req.params.effort {
            Some(effort) => effort != Effort::None,
            None => !model.ends_with("deepseek-chat"),
        },
    }
}

/// Models whose chat template rejects roles that do not alternate.
fn has_alternating_template(model: &str) -> bool {
    const FAMILIES: [&str; 9] =
        ["mistral", "mixtral", "ministral", "magistral", "devstral", "codestral", "gemma", "llama-2", "llama2"];
    let model = model.to_lowercase();
    FAMILIES.iter().any(|family| model.contains(family))
}

/// OpenAI and Azure: images in a request (guide to images and vision, 2025-10).
const OPENAI_IMAGES: usize = 500;

/// OpenAI and Azure: at most 128 tools ("Expected an array with maximum length 128", 2025-08),
/// descriptions of 1024 characters (2025-06; the newest models may take more), `properties`
/// ("object schema missing properties", 2025-04) and `items` ("array schema missing items",
/// 2024-05).
const OPENAI_TOOLS: ToolRules =
    ToolRules { count: Some(128), description: Some(1024), complete: true, plain_keys: false, simple: false };
