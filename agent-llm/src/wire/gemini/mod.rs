//! Gemini's `generateContent`, as implemented by the Gemini API, Vertex AI and proxies of both.
//!
//! # Round trip
//!
//! An unedited turn of the model is sent back to its provider unchanged, with all signatures in
//! place. Servers with the same [`GeminiProfile::provider`] count as the same provider; the model
//! does not matter. A streamed turn is assembled in the shape of a non-streamed response:
//! consecutive texts are one part, and so is consecutive reasoning, unless one is signed; a part
//! with a signature is unchanged, and empty parts are left out.
//!
//! The API sends the arguments of a call as an object, not as the model's text: they are serialised
//! here, equally for equal objects.
//!
//! Calls are sent back with the provider's ids. It often assigns none; generated ids are not sent.
//!
//! # Limitations
//!
//! * Instructions inside a conversation are sent as user messages.
//! * Parallel calls cannot be disabled: [`parallel_tool_calls`](agent_core::ModelParams) is not
//!   sent.
//! * A tool's result must be an object: a JSON object is sent unchanged, any other text as
//!   `{"result": ..}`, and that of a failed call as `{"error": ..}`. Arguments of another model's
//!   call that are not an object are sent as `{"arguments": ..}`.
//! * The provider caches automatically: [`Cache`](agent_core::message::Cache) markers are not sent.

mod answer;
mod citations;
#[cfg(feature = "requests")]
mod conversation;
mod encode;
mod fold;
mod messages;
mod partial;
mod parts;
mod profile;
mod read;
#[cfg(feature = "requests")]
mod request;
mod server_tools;
mod settings;
mod turn;
mod usage;
mod wrapper;

use agent_core::{
    Error, ModelRequest, ModelResponse, Result, ToolSpec, message::Origin, model::ToolFinding, tool::WireKey,
};
use bytes::Bytes;
use http::{Request, Uri};

use self::answer::Answer;
pub use self::profile::{GeminiGeneration, GeminiProfile, GeminiSchemas};
use crate::{
    Adapted, Codec, Decoder,
    wire::{
        body::{Bodies, Draft},
        check::{Learned, Rules, check_tools, checked},
        endpoint::{endpoint, post},
        events::Events,
        server_tools::{check, check_no_count, refusal},
        surrogates::text_of,
    },
};

/// Name of the wire in an [`Origin`].
const WIRE: &str = "gemini-generate";

/// [`Codec`] of Gemini's `generateContent` and `streamGenerateContent`.
///
/// ```
/// use agent_core::{ModelRequest, History, Message, testing::detached_run};
/// use agent_llm::{Codec, GeminiCodec, GeminiProfile};
///
/// let codec = GeminiCodec::new("gemini-2.5-flash", GeminiProfile::ai_studio())?;
/// let run = detached_run(History::from_messages([Message::user("hello")])?);
/// let request = codec.encode(&ModelRequest::new(run.cx().clone()))?;
/// assert_eq!(request.uri().path(), "/v1beta/models/gemini-2.5-flash:generateContent");
/// assert_eq!(request.body(), r#"{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}"#);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Debug)]
pub struct GeminiCodec {
    whole: Uri,
    streamed: Uri,
    profile: GeminiProfile,
    origin: Origin,
    generation: GeminiGeneration,
    rules: Rules,
    key: WireKey,
    bodies: Bodies,
}

impl GeminiCodec {
    /// Creates a codec for `model` on a server with this profile. A name with a slash, such as
    /// `tunedModels/mine`, is used in the URL unchanged; any other is placed below `models/`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is invalid.
    pub fn new(model: impl Into<String>, profile: GeminiProfile) -> Result<Self> {
        let model = model.into();
        let path = if model.contains('/') { format!("/{model}") } else { format!("/models/{model}") };
        let whole = endpoint(&profile.base_url, &format!("{path}:generateContent"))?;
        let streamed = endpoint(&profile.base_url, &format!("{path}:streamGenerateContent?alt=sse"))?;
        let generation = profile.generation_of(&model);
        let rules = Rules::gemini();
        let key = key(&profile, generation, rules);
        let origin = Origin::new(WIRE, &profile.provider, model);
        Ok(Self { whole, streamed, profile, origin, generation, rules, key, bodies: Bodies::default() })
    }

    /// Returns the server's profile.
    pub fn profile(&self) -> &GeminiProfile {
        &self.profile
    }
}

fn key(profile: &GeminiProfile, generation: GeminiGeneration, rules: Rules) -> WireKey {
    WireKey::new(&(WIRE, &profile.provider, generation, profile.schemas, profile.exclude_domains, rules))
}

impl Codec for GeminiCodec {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        let checked = checked(req, &self.origin, &self.rules)?;
        let req = &*checked;
        let excludes = self.profile.exclude_domains;
        check(&req.tools, "generate", |tool| server_tools::tool(tool, excludes).err())?;
        if self.generation == GeminiGeneration::Gemini3 {
            check_no_count(&req.params)?;
        }
        if req.params.voice.as_ref().is_some_and(|voice| voice.format.is_some()) {
            return Err(refusal("Gemini chooses the format of its speech itself: leave the voice's `format` out"));
        }
        let uri = if req.stream { &self.streamed } else { &self.whole };
        let write = |out: &mut Draft| encode::encode(req, self, out);
        Ok(post(uri.clone(), self.bodies.body(write)))
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        answer::decode(&text_of(body), &self.origin)
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        check_tools(tools, &self.rules)
    }

    fn adapt(&self, refused: &Error) -> Option<Adapted> {
        let Learned { rules, rule, is_lasting } = self.rules.learn(refused)?;
        let codec = Self {
            whole: self.whole.clone(),
            streamed: self.streamed.clone(),
            profile: self.profile.clone(),
            origin: self.origin.clone(),
            generation: self.generation,
            rules,
            key: key(&self.profile, self.generation, rules),
            bodies: Bodies::default(),
        };
        Some(Adapted::new(codec, rule, is_lasting))
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(Events(Answer::new(self.origin.clone(), chunks)))
    }
}

#[cfg(feature = "requests")]
impl crate::RequestReader for GeminiCodec {
    /// The URL, not the body, tells whether the answer is streamed.
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::decode_request(&text_of(body), self)
    }
}
