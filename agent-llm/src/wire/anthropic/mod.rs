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
mod block_fold;
mod claude;
mod encode;
mod envelope;
mod finish;
mod fold;
mod media;
mod messages;
mod parts;
mod profile;
mod read;
#[cfg(feature = "requests")]
mod request;
mod schema;
mod server_tools;
mod settings;
mod tools;
mod usage;

use agent_core::{Error, ModelRequest, ModelResponse, Result, message::Origin, tool::WireKey};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use serde_json::{Map, Value, json};

use self::{answer::Answer, envelope::Addresses, settings::Settings};
pub use self::{claude::ClaudeThinking, envelope::AnthropicEnvelope, profile::AnthropicProfile};
pub(crate) use self::{
    claude::{Claude, MAX_TOKENS},
    schema::closed,
    server_tools::{FILES, approximate},
    settings::{check_budget, tell_if_thoughtless, thinking},
    tools::input_schema,
};
use crate::{
    Codec, Decoder, Framing, ProviderError,
    wire::{
        body::{Bodies, Draft},
        endpoint::post,
        server_tools::{check, check_no_count, check_text_alone},
        surrogates::text_of,
    },
};

/// The wire's name in an [`Origin`].
const WIRE: &str = "anthropic-messages";

/// The header that asks for what is not yet for all.
const BETAS: &str = "anthropic-beta";

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
    addresses: Addresses,
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
        let addresses = profile.addresses(&model)?;
        let mut headers = HeaderMap::new();
        for name in profile.envelope.headers() {
            let value = if *name == BETAS { profile.betas.join(",") } else { profile.version.clone() };
            if !value.is_empty() {
                let value = HeaderValue::try_from(&value)
                    .map_err(|_| Error::config(format!("'{value}' cannot stand in the header '{name}'")))?;
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let mut claude = Claude::of(&model);
        claude.thinking = profile.thinking.unwrap_or(claude.thinking);
        let origin = Origin::new(WIRE, profile.provider.clone(), model);
        let key = WireKey::new(&(WIRE, &profile.provider, claude.computer().0));
        Ok(Self { addresses, headers, profile, origin, claude, key, bodies: Bodies::default() })
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

    /// Asks for the betas that the request `needs`, where a header says them.
    fn ask_for(&self, needs: &[&'static str], headers: &mut HeaderMap) {
        if needs.is_empty() || !self.profile.envelope.headers().contains(&BETAS) {
            return;
        }
        if let Ok(value) = HeaderValue::try_from(self.profile.betas(needs).join(",")) {
            headers.insert(HeaderName::from_static(BETAS), value);
        }
    }
}

impl Codec for AnthropicCodec {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        media::check(&req.messages, &self.origin)?;
        let betas = server_tools::betas(req, &self.claude);
        let head = self.profile.head(self.origin.model(), req.stream, &betas);
        let settings = Settings::of(req, head, &self.claude);
        settings.check()?;
        tell_if_thoughtless(req);
        if !self.claude.is_told_a_number() {
            check_no_count(&req.params)?;
        }
        check_text_alone(&req.params, "ask a model of the wire generate, responses or chat for images and speech")?;
        check(&req.tools, "messages", |tool| server_tools::tool(tool, &self.claude).err())?;
        let write = |out: &mut Draft| encode::encode(req, &settings, &self.origin, &self.claude, self.key, out);
        let uri = if req.stream { &self.addresses.streamed } else { &self.addresses.whole };
        let mut request = post(uri.clone(), self.bodies.body(write));
        request.headers_mut().extend(self.headers.clone());
        self.ask_for(&betas, request.headers_mut());
        Ok(request)
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        answer::decode(&text_of(body), &self.origin)
    }

    fn decode_error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        ProviderError::from_response(status, headers, body).into_error(&self.profile.provider)
    }

    fn amend(&self, req: &ModelRequest, refused: &Error) -> Option<ModelRequest> {
        amend::without_reasoning(req, refused, self.claude.thinking)
    }

    fn session_fields(&self, session: &str) -> Map<String, Value> {
        Map::from_iter([("metadata".to_owned(), json!({"user_id": session}))])
    }

    fn framing(&self) -> Framing {
        self.profile.envelope.framing()
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(Answer::new(self.origin.clone(), chunks))
    }
}

#[cfg(feature = "requests")]
impl crate::RequestReader for AnthropicCodec {
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::decode_request(body, &self.origin, self.profile.head("", false, &[]), &self.claude)
    }
}
