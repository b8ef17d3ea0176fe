//! OpenAI Responses, as implemented by OpenAI and compatible servers.
//!
//! # Turns are lists of items
//!
//! A model's answer is a list of items: reasoning, messages, calls, and calls of provider-side
//! tools. An [`AssistantMessage`](agent_core::AssistantMessage) is one such list (`output`), and
//! its raw JSON is that list.
//!
//! | item | block |
//! |---|---|
//! | `message` | a text for each `output_text`, with its citations; anything else in it (a refusal) as `Other` |
//! | `reasoning` | reasoning: the summary and the text, with `encrypted_content` |
//! | `function_call`, `custom_tool_call` | a tool call, whose id is the `call_id` |
//! | `computer_call` | a tool call of `computer`; its result is a `computer_call_output` with the last image of it |
//! | `image_generation_call` | an image |
//! | `web_search_call`, `file_search_call`, `code_interpreter_call`, `mcp_call` | a call of a provider-side tool |
//! | all others | `Other` |
//!
//! # No state at the server
//!
//! By default a request sets `store: false` and asks for encrypted reasoning
//! (`include: ["reasoning.encrypted_content"]`): the history is complete, and every turn is sent
//! back with its reasoning. [`ResponsesProfile::stateless`] disables this; `store`,
//! `previous_response_id`, `conversation` and all other fields of the API can be set with
//! [`ModelParams::extra`](agent_core::ModelParams::extra). Reasoning that was not encrypted because
//! the server stores it can only be sent back while the server does: such a history cannot be
//! continued with a stateless codec.
//!
//! # Round trip
//!
//! An unedited turn is sent back to its provider unchanged, item for item, with ids and states: the
//! API accepts its own `output`, except for parts that its types reject: search sources without a
//! URL, and log probabilities that are `null`. An edited turn is sent back without the ids of its
//! items, since the API compares them and rejects a turn of which only some are left; its reasoning
//! is included if it is encrypted or readable. Another provider's turn is sent as its texts and
//! calls.
//!
//! User items that are not messages (`item_reference`, `computer_call_output`,
//! `mcp_approval_response`) are [`Part::Other`](agent_core::Part::Other) of a user message.
//!
//! # Limitations
//!
//! * The API has no stop sequences: a request with [`stop`](agent_core::ModelParams::stop) is an
//!   error. For a server that supports them, set them in
//!   [`ModelParams::extra`](agent_core::ModelParams::extra).
//! * A seed is not sent to OpenAI; other servers support it.
//! * An assistant message contains no images: another provider's is sent as `[image]`.
//! * A failed tool result is not marked: its text has to say so.
//! * Function tools are sent with `strict: false`, because the API would otherwise rewrite their
//!   schemas: [`ResponsesProfile::strict_tools`].

mod answer;
mod encode;
mod fold;
mod profile;
mod read;
#[cfg(feature = "requests")]
mod request;
mod settings;
mod tools;
mod turn;

use agent_core::{
    Error, ModelRequest, ModelResponse, Result, ToolSpec, message::Origin, model::ToolFinding, tool::WireKey,
};
use bytes::Bytes;
use http::{Request, Uri};
use serde_json::{Map, Value};

use self::answer::Answer;
pub use self::profile::ResponsesProfile;
use crate::{
    Adapted, Codec, Decoder, Profile,
    wire::{
        body::{Bodies, Draft},
        check::{Learned, Rules, check_tools, checked},
        endpoint::post,
        openai_chat::messages::MessageStyle,
        server_tools::{check, check_no_count, check_text_alone, refusal},
        surrogates::text_of,
    },
};

/// Name of the wire in an [`Origin`].
const WIRE: &str = "openai-responses";

/// [`Codec`] of OpenAI Responses.
///
/// ```
/// use agent_core::{ModelRequest, History, Message, testing::detached_run};
/// use agent_llm::{Codec, OpenAiResponsesCodec, Profile};
///
/// let codec = OpenAiResponsesCodec::new("gpt-5", Profile::openai())?;
/// let run = detached_run(History::from_messages([Message::user("hello")])?);
/// let request = codec.encode(&ModelRequest::new(run.cx().clone()))?;
/// assert_eq!(request.uri(), "https://api.openai.com/v1/responses");
/// let body: serde_json::Value = serde_json::from_slice(request.body()).expect("JSON");
/// assert_eq!(body["input"], serde_json::json!([{"role": "user", "content": "hello"}]));
/// assert_eq!(body["store"], false);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Debug)]
pub struct OpenAiResponsesCodec {
    uri: Uri,
    manner: MessageStyle,
    key: WireKey,
    bodies: Bodies,
}

impl OpenAiResponsesCodec {
    /// Creates a codec for `model` on a server with this profile.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is invalid, or has an
    /// unset placeholder.
    pub fn new(model: impl Into<String>, profile: Profile) -> Result<Self> {
        let uri = profile.endpoint("/responses")?;
        let rules = Rules::responses(&profile);
        Ok(Self::with_manner(uri, MessageStyle::new(WIRE, model, profile, rules)))
    }

    fn with_manner(uri: Uri, manner: MessageStyle) -> Self {
        let Profile { provider, system_role, responses, .. } = &manner.profile;
        let is_preview = tools::is_preview(manner.origin.model());
        let key = WireKey::new(&(WIRE, provider, system_role, responses.strict_tools, is_preview, manner.rules));
        Self { uri, manner, key, bodies: Bodies::default() }
    }

    /// Returns the server's profile.
    pub fn profile(&self) -> &Profile {
        &self.manner.profile
    }
}

impl Codec for OpenAiResponsesCodec {
    fn origin(&self) -> &Origin {
        &self.manner.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        if !req.params.stop.is_empty() {
            return Err(refusal("OpenAI Responses knows no stop sequences: leave out `stop`, or put it into `extra`"));
        }
        check_no_count(&req.params)?;
        check_text_alone(
            &req.params,
            "offer `ServerTool::ImageGeneration` for images, ask on the wire chat for speech",
        )?;
        let checked = checked(req, &self.manner.origin, &self.manner.rules)?;
        let req = &*checked;
        let model = self.manner.origin.model();
        check(&req.tools, "responses", |tool| tools::own_tool(tool, model).err())?;
        let write = |out: &mut Draft| encode::encode(req, &self.manner, self.key, out);
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
        Some(Adapted::new(Self::with_manner(self.uri.clone(), manner), rule, is_lasting))
    }

    fn session_fields(&self, session: &str) -> Map<String, Value> {
        self.manner.profile.tell_session(session)
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(Answer::new(self.manner.origin.clone(), chunks))
    }
}

#[cfg(feature = "requests")]
impl crate::RequestReader for OpenAiResponsesCodec {
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::read(&text_of(body), &self.manner)
    }
}
