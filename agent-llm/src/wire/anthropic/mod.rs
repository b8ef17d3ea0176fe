//! Anthropic Messages, as Anthropic and the servers compatible with it speak it.
//!
//! # What goes back to the provider
//!
//! An unedited assistant message goes back as its provider sent it: with the signatures of its thinking, its citations, the
//! calls and results of tools that ran at the provider, and whatever else only the provider understands. "Its provider" is
//! a server with the same [`AnthropicProfile::provider`]. A streamed message is put together in the shape in which it
//! would have come whole. Two things that the API sends and does not take back are left out: empty texts, and thinking
//! without a signature. Another provider's thinking is never sent.
//!
//! If the provider refuses its own thinking all the same (it is bound to a model, and to a conversation), the request is
//! sent once more without any.
//!
//! # What the wire cannot say
//!
//! * There is no seed, and no form of the answer but a JSON Schema.
//! * A model that thinks takes no temperature but 1 and no `top_p` below 0.95: a request with one of them and with an
//!   [`effort`](agent_core::ModelParams::effort) is an error. Where a tool is forced on the model, it does not think.
//! * A number of tokens to think is refused for a model that is told an effort, and the other way round it is worked out:
//!   a share of the answer's limit.
//! * Sound, film, pictures but JPEG, PNG, GIF and WebP, and documents but PDF and text are an error; documents of text go as
//!   text.
//! * The answer's limit is mandatory: without [`max_tokens`](agent_core::ModelParams::max_tokens), it is what
//!   [`max_output`](crate::ModelBuilder::max_output) says, or else 32,000 tokens, or what the model can give if that is less.
//! * Instructions inside the conversation stand in the user's message, between `<system>` and `</system>`: not all models
//!   take them elsewhere. One with the API's own JSON ([`SystemMessage::with_raw`](agent_core::SystemMessage::with_raw))
//!   goes as it is.
//! * A call id may hold only letters, digits, `_` and `-`: another provider's is mapped to one.
//! * A model's own images stand as `[image]`.

mod amend;
mod answer;
mod draft;
mod encode;
mod messages;
mod parts;
mod profile;
mod read;
#[cfg(feature = "requests")]
mod request;
mod server_tools;
mod settings;
mod usage;

use agent_core::{Error, ModelRequest, ModelResponse, Result, message::Origin, tool::WireKey};
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde_json::{Map, Value, json};

pub use self::profile::{AnthropicEnvelope, AnthropicProfile};
use self::{answer::Answer, settings::settings};
pub(crate) use self::{
    encode::input_schema,
    server_tools::{FILES, approximate},
};
use crate::{
    Codec, Decoder, Framing,
    wire::{
        body::{Bodies, Draft},
        claude::{Claude, tell_if_thoughtless},
        endpoint::post,
        events::Events,
        server_tools::{check, check_text_alone},
        surrogates::text_of,
    },
};

/// The wire's name in an [`Origin`].
const WIRE: &str = "anthropic-messages";

/// The [`Codec`] of Anthropic Messages.
///
/// ```
/// use agent_core::{ModelRequest, History, Message, testing::detached_run};
/// use agent_llm::{AnthropicCodec, AnthropicProfile, Codec};
///
/// let codec = AnthropicCodec::new("claude-opus-4-6", AnthropicProfile::anthropic())?.with_max_tokens(64);
/// let run = detached_run(History::from_messages([Message::user("hello")])?);
/// let request = codec.encode(&ModelRequest::new(run.cx().clone()))?;
/// assert_eq!(request.uri(), "https://api.anthropic.com/v1/messages");
/// let messages = r#"[{"role":"user","content":[{"type":"text","text":"hello"}]}]"#;
/// let body = format!(r#"{{"model":"claude-opus-4-6","max_tokens":64,"messages":{messages}}}"#);
/// assert_eq!(request.body(), &body);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Debug)]
pub struct AnthropicCodec {
    whole: Uri,
    streamed: Uri,
    headers: HeaderMap,
    profile: AnthropicProfile,
    origin: Origin,
    claude: Claude,
    key: WireKey,
    bodies: Bodies,
}

impl AnthropicCodec {
    /// A codec for `model`, as served by a server of this profile. How the model is told to think, and how many tokens it
    /// can answer, is guessed from its name.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none, or the version or a beta is not what a header can
    /// hold.
    pub fn new(model: impl Into<String>, profile: AnthropicProfile) -> Result<Self> {
        let model = model.into();
        let (whole, streamed) = profile.addresses(&model)?;
        let headers = profile.headers(&[])?;
        let mut claude = Claude::of(&model);
        claude.thinking = profile.thinking.unwrap_or(claude.thinking);
        let origin = Origin::new(WIRE, profile.provider.clone(), model);
        let key = WireKey::new(&(WIRE, &profile.provider, claude.computer().0));
        Ok(Self { whole, streamed, headers, profile, origin, claude, key, bodies: Bodies::default() })
    }

    /// Sets the most tokens of an answer to a request that does not say.
    #[must_use]
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.claude.max_tokens = tokens;
        self
    }

    /// The server's profile.
    pub fn profile(&self) -> &AnthropicProfile {
        &self.profile
    }
}

impl Codec for AnthropicCodec {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        parts::check(&req.messages, &self.origin)?;
        check_text_alone(&req.params, "ask a model of the wire generate, responses or chat for images and speech")?;
        check(&req.tools, "messages", |tool| server_tools::tool(tool, &self.claude).err())?;
        let betas = server_tools::betas(req, &self.claude);
        let has_tools = !req.tools.is_empty() || req.params.extra.contains_key("tools");
        let head = self.profile.head(self.origin.model(), &betas);
        let mut settings = settings(&req.params, has_tools, &self.claude, head)?;
        settings.say("mcp_servers", Some(server_tools::mcp_servers(&req.tools)).filter(|servers| !servers.is_empty()));
        settings.say("stream", (req.stream && self.profile.envelope != AnthropicEnvelope::Bedrock).then_some(true));
        tell_if_thoughtless(req);
        let uri = if req.stream { &self.streamed } else { &self.whole };
        let write = |out: &mut Draft| encode::encode(req, &settings, self, out);
        let mut request = post(uri.clone(), self.bodies.body(write));
        let asking = if betas.is_empty() { None } else { Some(self.profile.headers(&betas)?) };
        for (name, value) in asking.as_ref().unwrap_or(&self.headers) {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        Ok(request)
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        answer::decode(&text_of(body), &self.origin)
    }

    fn amend(&self, req: &ModelRequest, refused: &Error) -> Option<ModelRequest> {
        amend::without_reasoning(req, refused, self.claude.thinking)
    }

    fn session_fields(&self, session: &str) -> Map<String, Value> {
        Map::from_iter([("metadata".to_owned(), json!({"user_id": session}))])
    }

    fn framing(&self) -> Framing {
        match self.profile.envelope {
            AnthropicEnvelope::Bedrock => Framing::AwsEvents,
            AnthropicEnvelope::Direct | AnthropicEnvelope::Vertex => Framing::ServerSentEvents,
        }
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(Events(Answer::new(self.origin.clone(), chunks)))
    }
}

#[cfg(feature = "requests")]
impl crate::RequestReader for AnthropicCodec {
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::decode_request(&text_of(body), self)
    }
}
