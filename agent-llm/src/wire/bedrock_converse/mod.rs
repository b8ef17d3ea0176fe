//! Amazon Bedrock's Converse: one form for the models of many makers.
//!
//! # What goes back to the provider
//!
//! An unedited assistant message goes back as Bedrock sent it: with the signatures of its thinking, its citations, the calls
//! and results of tools that ran at the provider, and whatever else only the model understands. A streamed message is put
//! together in the shape in which it would have come whole. Empty texts, which the API sends and does not take back, are left
//! out. Another provider's thinking is never sent.
//!
//! # What the wire cannot say
//!
//! * There is no seed, no limit of calls at a time, and no form of the answer but a JSON Schema.
//! * There is no word for "no tool": then tools are left out, as long as the conversation has no calls; with calls, the API
//!   insists on tools, and they stay.
//! * How much a model is to think is said in the words of its maker, in `additionalModelRequestFields`. Of a model for which
//!   none are known, to ask for an [`effort`](agent_core::ModelParams::effort) is an error.
//! * Media are inline or in S3 (`s3://bucket/key`); any other address is an error. Film and sound are documents with such a
//!   media type.
//! * Instructions inside the conversation stand in the user's message, between `<system>` and `</system>`.
//! * A call id may hold only letters, digits, `_` and `-`, at most 64: another provider's is mapped to one.
//! * A model's own images stand as `[image]`.
//!
//! Guardrails, performance, service tiers, metadata of the request and the like are said by
//! [`extra`](agent_core::ModelParams::extra): `guardrailConfig`, `performanceConfig`, `requestMetadata`.

mod answer;
mod draft;
mod encode;
mod family;
mod media;
mod messages;
mod parts;
mod profile;
mod read;
#[cfg(feature = "requests")]
mod request;
mod settings;
mod tools;
mod usage;

use agent_core::{ModelRequest, ModelResponse, Result, message::Origin, tool::WireKey};
use bytes::Bytes;
use http::{Request, Uri};

pub use self::profile::BedrockProfile;
use self::{answer::Answer, family::Family, settings::settings};
use crate::{
    Codec, Decoder, Framing,
    wire::{
        body::{Bodies, Draft},
        claude::tell_if_thoughtless,
        endpoint::{endpoint, percent_encoded, post},
        events::Events,
        server_tools::{self, check_text_alone},
        surrogates::text_of,
    },
};

/// The wire's name in an [`Origin`].
const WIRE: &str = "bedrock-converse";

/// The [`Codec`] of Amazon Bedrock's Converse.
///
/// ```
/// use agent_core::{ModelRequest, History, Message, testing::detached_run};
/// use agent_llm::{BedrockCodec, BedrockProfile, Codec};
///
/// let profile = BedrockProfile::compatible("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com");
/// let codec = BedrockCodec::new("us.amazon.nova-pro-v1:0", profile)?;
/// let run = detached_run(History::from_messages([Message::user("hello")])?);
/// let request = codec.encode(&ModelRequest::new(run.cx().clone()))?;
/// assert_eq!(request.uri().path(), "/model/us.amazon.nova-pro-v1%3A0/converse");
/// assert_eq!(request.body(), r#"{"messages":[{"role":"user","content":[{"text":"hello"}]}]}"#);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Debug)]
pub struct BedrockCodec {
    whole: Uri,
    streamed: Uri,
    profile: BedrockProfile,
    origin: Origin,
    family: Family,
    key: WireKey,
    bodies: Bodies,
}

impl BedrockCodec {
    /// A codec for `model`, an id or an ARN, as served by a server of this profile. How the model is told to think is guessed
    /// from its name.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none.
    pub fn new(model: impl Into<String>, profile: BedrockProfile) -> Result<Self> {
        let model = model.into();
        let uri = |what: &str| endpoint(&profile.base_url, &format!("/model/{}/{what}", percent_encoded(&model)));
        let (whole, streamed) = (uri("converse")?, uri("converse-stream")?);
        let family = Family::of(&model);
        let origin = Origin::new(WIRE, profile.provider.clone(), model);
        let key = WireKey::new(&(WIRE, &profile.provider));
        Ok(Self { whole, streamed, profile, origin, family, key, bodies: Bodies::default() })
    }

    /// The server's profile.
    pub fn profile(&self) -> &BedrockProfile {
        &self.profile
    }
}

impl Codec for BedrockCodec {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        media::check(&req.messages, &self.origin)?;
        check_text_alone(&req.params, "ask a model of the wire generate, responses or chat for images and speech")?;
        server_tools::check(&req.tools, "converse", |tool| tools::lack(tool, &self.family))?;
        let settings = settings(&req.params, !req.tools.is_empty(), &self.family)?;
        if matches!(self.family, Family::Claude(_)) {
            tell_if_thoughtless(req);
        }
        let write = |out: &mut Draft| encode::encode(req, settings, &self.origin, self.key, out);
        let uri = if req.stream { &self.streamed } else { &self.whole };
        Ok(post(uri.clone(), self.bodies.body(write)))
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        answer::decode(&text_of(body), &self.origin)
    }

    fn framing(&self) -> Framing {
        Framing::AwsEvents
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(Events(Answer::new(self.origin.clone(), chunks)))
    }
}

#[cfg(feature = "requests")]
impl crate::RequestReader for BedrockCodec {
    fn decode_request(&self, body: &[u8]) -> Result<crate::ParsedRequest> {
        request::decode_request(&text_of(body), &self.origin, &self.family)
    }
}
