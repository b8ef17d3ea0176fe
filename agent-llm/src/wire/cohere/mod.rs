//! Cohere's Chat, version 2.
//!
//! Its messages, tools and turns have the format of Chat Completions, and share their encoding and
//! decoding; its settings, events, usage and citations are its own. A `tool_plan` is reasoning.
//!
//! # Round trip
//!
//! An unedited assistant message is sent back to its provider unchanged, with its plan and its
//! citations. Servers with the same [`CohereProfile::provider`] count as the same provider; the
//! model does not matter. A streamed message is assembled in the shape of a non-streamed response.
//!
//! # Documents
//!
//! Source documents are a field of the request: `documents` in
//! [`ModelParams::extra`](agent_core::ModelParams), as are `safety_mode`, `strict_tools` and all
//! other fields specific to Cohere. Citations of documents and of tool results are in the
//! [`citations`](agent_core::Text) of the text.
//!
//! # Limitations
//!
//! * A message with documents is an error.
//! * To force one tool, only that tool is offered, and the model must call some tool.
//! * Parallel calls cannot be disabled: [`parallel_tool_calls`](agent_core::ModelParams) is not
//!   sent.
//! * An output format has neither a name nor a description, and the provider rejects it together
//!   with tools.
//! * An effort is a token budget: 256, 1,024 or 4,096 up to [`Medium`](agent_core::model::Effort),
//!   and unlimited above.
//! * As in Chat Completions, images of a tool's result follow all results in one user message, and
//!   only the text of a failed result indicates the failure.

mod answer;
mod citations;
mod encode;
mod events;
mod fold;
mod profile;
#[cfg(feature = "requests")]
mod request;
mod settings;
mod usage;

use agent_core::{
    Error, ModelRequest, ModelResponse, Part, Result, ToolSpec, message::Origin, model::ToolFinding, tool::WireKey,
};
use bytes::Bytes;
use http::{Request, Uri};

use self::answer::Answer;
pub use self::profile::CohereProfile;
use crate::{
    Adapted, Codec, Decoder,
    wire::{
        body::{Bodies, Draft},
        check::{Learned, Rules, check_tools, checked},
        content::{check_parts, is_file},
        endpoint::{endpoint, post},
        events::Events,
        openai_chat::{encode::encode, messages::MessageStyle},
        server_tools::{self, Lack, check_text_alone},
        surrogates::text_of,
    },
};

/// Name of the wire in an [`Origin`].
const WIRE: &str = "cohere-chat";

/// [`Codec`] of Cohere's Chat, version 2.
///
/// ```
/// use agent_core::{ModelRequest, History, Message, testing::detached_run};
/// use agent_llm::{Codec, CohereCodec, CohereProfile};
///
/// let codec = CohereCodec::new("command-a-03-2025", CohereProfile::compatible("cohere", "https://api.cohere.com/v2"))?;
/// let run = detached_run(History::from_messages([Message::user("hello")])?);
/// let request = codec.encode(&ModelRequest::new(run.cx().clone()))?;
/// assert_eq!(request.uri(), "https://api.cohere.com/v2/chat");
/// assert_eq!(request.body(), r#"{"model":"command-a-03-2025","messages":[{"role":"user","content":"hello"}]}"#);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Debug)]
pub struct CohereCodec {
    uri: Uri,
    profile: CohereProfile,
    manner: MessageStyle,
    key: WireKey,
    bodies: Bodies,
}

impl CohereCodec {
    /// Creates a codec for `model` on a server with this profile.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is invalid.
    pub fn new(model: impl Into<String>, profile: CohereProfile) -> Result<Self> {
        let uri = endpoint(&profile.base_url, "/chat")?;
        let manner = MessageStyle::verbatim(Origin::new(WIRE, &profile.provider, model), Rules::cohere());
        Ok(Self::with_manner(uri, profile, manner))
    }

    fn with_manner(uri: Uri, profile: CohereProfile, manner: MessageStyle) -> Self {
        let key = WireKey::new(&(WIRE, &profile.provider, manner.rules));
        Self { uri, profile, manner, key, bodies: Bodies::default() }
    }

    /// Returns the server's profile.
    pub fn profile(&self) -> &CohereProfile {
        &self.profile
    }
}

impl Codec for CohereCodec {
    fn origin(&self) -> &Origin {
        &self.manner.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        let checked = checked(req, &self.manner.origin, &self.manner.rules)?;
        let req = &*checked;
        let is_taken = |part: &Part| !matches!(part, Part::Document(_)) && !is_file(part);
        check_parts(
            req,
            is_taken,
            "Cohere takes text and images: put the text of documents into the field 'documents'",
        )?;
        check_text_alone(&req.params, "ask a model of the wire generate, responses or chat for images and speech")?;
        server_tools::check(&req.tools, "cohere", |_| Some(Lack::Tool))?;
        let write = |out: &mut Draft| encode(req, self, self.key, out);
        Ok(post(self.uri.clone(), self.bodies.body(write)))
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        answer::decode(&text_of(body), self.origin())
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
impl crate::RequestReader for CohereCodec {
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::decode_request(&text_of(body), &self.manner)
    }
}
