//! Ollama's native chat API.
//!
//! A provider's messages are sent back to it unchanged, including reasoning; streamed ones as in a
//! non-streamed response.
//!
//! # Context window
//!
//! A server loads a model with a smaller window than the model supports, unless `num_ctx` is set in
//! [`options`](OllamaProfile::options), and silently drops what does not fit.
//! [`truncate`](OllamaProfile::truncate) controls whether it may.
//!
//! # Limitations
//!
//! * A tool call cannot be forced: only the permitted tools are offered, and the model may call
//!   none of them.
//! * Parallel calls cannot be disabled: [`parallel_tool_calls`](agent_core::ModelParams) is not
//!   sent.
//! * An output format has neither a name nor a description, and prevents tool calls if there are
//!   tools.
//! * The lowest effort is `low`.
//! * Images are sent as base64, not as URLs; documents are not supported.
//! * A failed tool result is not marked: its text has to say so.

mod answer;
mod encode;
mod fold;
mod profile;
#[cfg(feature = "requests")]
mod request;
mod settings;

use agent_core::{
    Error, ModelRequest, ModelResponse, Part, Result, ToolSpec, message::Origin, model::ToolFinding, tool::WireKey,
};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri};

pub use self::profile::OllamaProfile;
#[cfg(feature = "http")]
pub(crate) use self::profile::server;
use self::{answer::Answer, encode::image};
use crate::{
    Adapted, Codec, Decoder, Framing, ProviderError,
    wire::{
        body::{Bodies, Draft},
        check::{Learned, Rules, check_tools, checked},
        content::check_parts,
        endpoint::{endpoint, post},
        events::Events,
        openai_chat::{encode::encode, messages::MessageStyle},
        server_tools::{self, Lack, check_no_count, check_text_alone},
        surrogates::text_of,
    },
};

/// Name of the wire in an [`Origin`].
const WIRE: &str = "ollama-chat";

/// [`Codec`] of Ollama's native chat API.
///
/// ```
/// use agent_core::{ModelRequest, History, Message, testing::detached_run};
/// use agent_llm::{Codec, OllamaCodec, OllamaProfile};
///
/// let codec = OllamaCodec::new("qwen3:8b", OllamaProfile::compatible("ollama", "http://localhost:11434"))?;
/// let run = detached_run(History::from_messages([Message::user("hello")])?);
/// let request = codec.encode(&ModelRequest::new(run.cx().clone()))?;
/// assert_eq!(request.uri(), "http://localhost:11434/api/chat");
/// let body = r#"{"model":"qwen3:8b","stream":false,"messages":[{"role":"user","content":"hello"}]}"#;
/// assert_eq!(request.body(), body);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Debug)]
pub struct OllamaCodec {
    uri: Uri,
    profile: OllamaProfile,
    manner: MessageStyle,
    key: WireKey,
    bodies: Bodies,
}

impl OllamaCodec {
    /// Creates a codec for `model` on a server with this profile.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is invalid.
    pub fn new(model: impl Into<String>, profile: OllamaProfile) -> Result<Self> {
        let uri = endpoint(profile::server(&profile.base_url), "/api/chat")?;
        let manner = MessageStyle::verbatim(Origin::new(WIRE, &profile.provider, model), Rules::any());
        Ok(Self::with_manner(uri, profile, manner))
    }

    fn with_manner(uri: Uri, profile: OllamaProfile, manner: MessageStyle) -> Self {
        let key = WireKey::new(&(WIRE, &profile.provider, manner.rules));
        Self { uri, profile, manner, key, bodies: Bodies::default() }
    }

    /// Returns the server's profile.
    pub fn profile(&self) -> &OllamaProfile {
        &self.profile
    }
}

impl Codec for OllamaCodec {
    fn origin(&self) -> &Origin {
        &self.manner.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        let checked = checked(req, &self.manner.origin, &self.manner.rules)?;
        let req = &*checked;
        let is_taken = |part: &Part| image(part).is_some() || !matches!(part, Part::Image(_) | Part::Document(_));
        check_parts(req, is_taken, "Ollama takes text, and images as Base64: fetch an image from its address first")?;
        check_text_alone(&req.params, "ask a model of the wire generate, responses or chat for images and speech")?;
        check_no_count(&req.params)?;
        server_tools::check(&req.tools, "ollama", |_| Some(Lack::Tool))?;
        let write = |out: &mut Draft| encode(req, self, self.key, out);
        Ok(post(self.uri.clone(), self.bodies.body(write)))
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        answer::decode(&text_of(body), self.origin())
    }

    /// The error for a model that is not installed says how to pull it.
    fn decode_error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        let said = ProviderError::from_response(status, headers, body);
        let is_missing = said.message.starts_with("model ") && said.message.contains("not found");
        let error = said.into_error(&self.profile.provider);
        if status != StatusCode::NOT_FOUND || !is_missing {
            return error;
        }
        let model = self.manner.origin.model();
        error.map_message(|message| format!("{message}: get it with `ollama pull {model}`"))
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        check_tools(tools, &self.manner.rules)
    }

    fn adapt(&self, refused: &Error) -> Option<Adapted> {
        let Learned { rules, rule, is_lasting } = self.manner.rules.learn(refused)?;
        let manner = MessageStyle { rules, ..self.manner.clone() };
        Some(Adapted::new(Self::with_manner(self.uri.clone(), self.profile.clone(), manner), rule, is_lasting))
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(Events(Answer::new(self.manner.origin.clone(), chunks)))
    }
}

#[cfg(feature = "requests")]
impl crate::RequestReader for OllamaCodec {
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::decode_request(&text_of(body), &self.profile, &self.manner)
    }
}
