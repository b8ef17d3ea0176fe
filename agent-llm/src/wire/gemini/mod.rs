//! Gemini's `generateContent`, as the Gemini API, Vertex AI and proxies of both speak it.
//!
//! # What goes back to the provider
//!
//! An unedited turn of the model goes back as its provider sent it, with all signatures in place. "Its provider" is a server
//! with the same [`GeminiProfile::provider`]; the model does not matter. A streamed turn is put together in the shape in
//! which it would have come whole: texts that follow each other are one part, and so are thoughts, unless one is signed; a
//! part with a signature stays as it came, and parts without a word are left out.
//!
//! The API gives the arguments of a call as an object, not as the model wrote them: their text is made here, and is the same
//! for equal objects.
//!
//! Calls go back with the ids that the provider gave them. It often gives none; those that were made up here stay here.
//!
//! # What the wire cannot say
//!
//! * Instructions within a conversation are said by the user.
//! * Nothing forbids the model several calls at once: [`parallel_tool_calls`](agent_core::ModelParams) is not sent.
//! * A tool's result must be an object: JSON of one goes as it is, any other text as `{"result": ..}`, and that of a failed
//!   call as `{"error": ..}`. Arguments of another model's call that are no object go as `{"arguments": ..}`.
//! * The provider caches by itself: [`Cache`](agent_core::message::Cache) marks are not sent.

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

use agent_core::{ModelRequest, ModelResponse, Result, message::Origin, tool::WireKey};
use bytes::Bytes;
use http::{Request, Uri};

use self::answer::Answer;
pub use self::profile::{GeminiGeneration, GeminiProfile, GeminiSchemas};
use crate::{
    Codec, Decoder,
    wire::{
        body::{Bodies, Draft},
        endpoint::{endpoint, post},
        events::Events,
        server_tools::{check, check_no_count, refusal},
        surrogates::text_of,
    },
};

/// The wire's name in an [`Origin`].
const WIRE: &str = "gemini-generate";

/// The [`Codec`] of Gemini's `generateContent` and `streamGenerateContent`.
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
    key: WireKey,
    bodies: Bodies,
}

impl GeminiCodec {
    /// A codec for `model`, as served by a server of this profile. A name with a slash in it, such as `tunedModels/mine`,
    /// stands in the address as it is; any other below `models/`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is none.
    pub fn new(model: impl Into<String>, profile: GeminiProfile) -> Result<Self> {
        let model = model.into();
        let path = if model.contains('/') { format!("/{model}") } else { format!("/models/{model}") };
        let whole = endpoint(&profile.base_url, &format!("{path}:generateContent"))?;
        let streamed = endpoint(&profile.base_url, &format!("{path}:streamGenerateContent?alt=sse"))?;
        let generation = profile.generation_of(&model);
        let key = WireKey::new(&(WIRE, &profile.provider, generation, profile.schemas, profile.exclude_domains));
        let origin = Origin::new(WIRE, &profile.provider, model);
        Ok(Self { whole, streamed, profile, origin, generation, key, bodies: Bodies::default() })
    }

    /// The server's profile.
    pub fn profile(&self) -> &GeminiProfile {
        &self.profile
    }
}

impl Codec for GeminiCodec {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
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

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(Events(Answer::new(self.origin.clone(), chunks)))
    }
}

#[cfg(feature = "requests")]
impl crate::RequestReader for GeminiCodec {
    /// The body does not say whether the answer is to be streamed: the address does.
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::decode_request(&text_of(body), self)
    }
}
