//! OpenAI Chat Completions, as implemented by OpenAI and dozens of other servers.
//!
//! # Round trip
//!
//! An unedited assistant message is sent back to its provider unchanged, byte for byte, with all
//! provider-specific fields: providers accept what they sent, including `null`s and empty lists,
//! and some require it (the reasoning of a turn with tool calls). Servers with the same
//! [`Profile::provider`] count as the same provider; the model does not matter. A streamed message
//! is assembled in the shape of a non-streamed response. Servers that reject their own fields are
//! those without [`Profile::verbatim`].
//!
//! # Limitations
//!
//! * A tool result contains only text. Images and documents of a turn's results follow all of them,
//!   in one user message.
//! * An assistant message contains no images: another provider's is sent as `[image]`.
//! * A failed tool result is not marked: its text has to say so.

mod answer;
#[cfg(feature = "requests")]
pub(super) mod back;
pub(super) mod encode;
mod fold;
mod harmony;
pub(super) mod messages;
pub(super) mod parts;
pub(super) mod read;
#[cfg(feature = "requests")]
pub(super) mod request;
mod settings;
mod tags;
mod turn;

use agent_core::{
    Error, ModelRequest, ModelResponse, Result, ToolSpec,
    message::Origin,
    model::{Modality, ToolFinding},
    tool::WireKey,
};
use bytes::Bytes;
use http::{Request, Uri};
use serde_json::{Map, Value};

use self::{answer::Answer, messages::MessageStyle};
use super::{profile, usage};
use crate::{
    Adapted, Codec, Decoder, Profile,
    wire::{
        body::{Bodies, Draft},
        check::{Learned, Rules, check_tools, checked},
        endpoint::post,
        server_tools::{self, check_no_count, refusal},
        surrogates::text_of,
    },
};

/// Name of the wire in an [`Origin`].
const WIRE: &str = "openai-chat";

/// [`Codec`] of OpenAI Chat Completions.
///
/// ```
/// use agent_core::{Error, ModelRequest, History, Message, testing::detached_run};
/// use agent_llm::{Codec, OpenAiChatCodec, Profile};
///
/// let codec = OpenAiChatCodec::new("gpt-5", Profile::openai())?;
/// let run = detached_run(History::from_messages([Message::user("hello")])?);
/// let request = codec.encode(&ModelRequest::new(run.cx().clone()))?;
/// assert_eq!(request.uri(), "https://api.openai.com/v1/chat/completions");
/// assert_eq!(request.body(), r#"{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}"#);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Debug)]
pub struct OpenAiChatCodec {
    uri: Uri,
    manner: MessageStyle,
    key: WireKey,
    bodies: Bodies,
}

impl OpenAiChatCodec {
    /// Creates a codec for `model` on a server with this profile.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is invalid, or has an
    /// unset placeholder.
    pub fn new(model: impl Into<String>, profile: Profile) -> Result<Self> {
        let uri = profile.endpoint("/chat/completions")?;
        let model = model.into();
        let rules = Rules::chat(&model, &profile);
        Ok(Self::with_manner(uri, MessageStyle::new(WIRE, model, profile, rules)))
    }

    fn with_manner(uri: Uri, manner: MessageStyle) -> Self {
        let Profile { provider, system_role, verbatim, cache_control, .. } = &manner.profile;
        let key = WireKey::new(&(WIRE, provider, system_role, verbatim, cache_control, manner.rules));
        Self { uri, manner, key, bodies: Bodies::default() }
    }

    /// Returns the server's profile.
    pub fn profile(&self) -> &Profile {
        &self.manner.profile
    }
}

impl Codec for OpenAiChatCodec {
    fn origin(&self) -> &Origin {
        &self.manner.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        let checked = checked(req, &self.manner.origin, &self.manner.rules)?;
        let req = &*checked;
        server_tools::check(&req.tools, "chat", |tool| encode::lack(tool, &self.manner.profile))?;
        if self.manner.profile.thinking_tokens.is_none() {
            check_no_count(&req.params)?;
        }
        if req.params.modalities.contains(&Modality::Audio) && req.params.voice.is_none() {
            return Err(refusal("a spoken answer needs a `voice`"));
        }
        let write = |out: &mut Draft| encode::encode(req, self, self.key, out);
        Ok(post(self.uri.clone(), self.bodies.body(write)))
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        answer::decode(&text_of(body), self.origin(), self.manner.profile.thinking_tags)
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        check_tools(tools, &self.manner.rules)
    }

    fn adapt(&self, refused: &Error) -> Option<Adapted> {
        let Learned { rules, rule, is_lasting } = self.manner.rules.learn(refused)?;
        let manner = MessageStyle { rules, ..self.manner.clone() };
        Some(Adapted::new(Self::with_manner(self.uri.clone(), manner), rule, is_lasting))
    }

    fn session_fields(&self, session: &str) -> Map<String, Value> {
        self.manner.profile.tell_session(session)
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(Answer::new(self.manner.origin.clone(), chunks, self.manner.profile.thinking_tags))
    }
}

#[cfg(feature = "requests")]
impl crate::RequestReader for OpenAiChatCodec {
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::decode_request(&text_of(body), &self.manner)
    }
}
