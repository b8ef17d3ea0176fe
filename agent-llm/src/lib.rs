//! Models: the wires that providers speak, the transport below them, and the layers above.
//!
//! | to | use |
//! |---|---|
//! | call a model | [`model`]: by its name, `provider:model` |
//! | call a server of one's own | [`Provider`], or a line in a file: [`Providers`] is the table of all that are known |
//! | say what is particular to a server | [`Profile`] for OpenAI's wires, [`AnthropicProfile`], [`GeminiProfile`], [`CohereProfile`], [`BedrockProfile`], [`OllamaProfile`] |
//! | try failed calls again | [`RetryLayer`] |
//! | ask another model when one fails | [`Failover`] |
//! | ask the model that fits the call best | [`ModelRouter`] |
//! | answer many requests at half the price, within a day | [`batches`] |
//! | keep files at a provider | [`files()`] |
//! | leave a failing model alone for a while | [`CircuitBreaker`] |
//! | not wait for a slow call | [`HedgeLayer`] |
//! | put tower layers around one model | [`LayeredModel`] |
//! | limit how many calls run at once | [tower's own layer](#layers) |
//! | give tools to a model that takes none | [`XmlTools`] |
//! | keep within a provider's rate limits, all agents together | [`RateLimiter`] |
//! | give the same answer again | [`ResponseCache`] |
//! | test against a real model without its network | [`Cassette`] |
//! | test without any model | [`ScriptedModel`] says what a test wrote down; `offline` answers from documents |
//! | find a model on this machine, get one | [`local::find`], [`local::Ollama`] |
//! | count tokens | [`tokens`] |
//! | know a model's context window and prices | [`Catalogue`] |
//! | send requests some other way | [`Transport`], [`transport_fn`]; [`HttpTransport`] is the default |
//! | go through a proxy, trust other certificates, limit connections | [`HttpTransport::builder`] |
//! | make vectors of texts, and rank documents | [`embedder`], [`embed`]; [`reranker`], [`rank`] |
//! | add a wire | [`Codec`] and [`Decoder`], and [`ModelBuilder::new`] for them; [`Framing`] and [`ProviderError`] help, and [`conformance`] checks it |
//!
//! What a provider said is kept in its own JSON beside what this framework understood of it, and goes back to that
//! provider unchanged. A message that was streamed is the message that would have come whole.
//!
//! # Example
//!
//! A model over a transport that is no network:
//!
//! ```
//! use agent_core::{History, Message, Model, ModelRequest, testing::detached_run};
//! use agent_llm::{model, transport_fn};
//! use http::Response;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
//! let answer = r#"{"choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}]}"#;
//! let provider = transport_fn(move |_request| async move { Ok(Response::new(answer.into())) });
//! let model = model("openai:gpt-5").transport(provider).build()?;
//!
//! let run = detached_run(History::from_messages([Message::user("What is 6 x 7?")])?);
//! let response = model.call(ModelRequest::new(run.cx().clone())).await?;
//! assert_eq!(response.message.text(), "42");
//! # Ok::<(), agent_core::Error>(())
//! # }).expect("answers");
//! ```
//!
//! # Layers
//!
//! All layers here are tower layers, beside tower's own: they go around the calls of an agent (its builder's `model_layer`)
//! or around one model ([`LayeredModel`]). A concurrency limit, for one, is shared by all clones of the model that it is
//! put around; a `GlobalConcurrencyLimitLayer` is shared by everything that it is put around:
//!
//! ```
//! use agent_llm::{LayeredModel, RetryLayer, model};
//! use tower::limit::GlobalConcurrencyLimitLayer;
//!
//! let eight_in_all = GlobalConcurrencyLimitLayer::new(8);
//! let large = model("openai:gpt-5").api_key("sk-..").retries(0).build()?;
//! let small = model("openai:gpt-5-mini").api_key("sk-..").retries(0).build()?;
//! // The limit is inside the retry: who waits to try again holds no place.
//! let large = LayeredModel::new(large, (RetryLayer::new(), eight_in_all.clone()));
//! let small = LayeredModel::new(small, (RetryLayer::new(), eight_in_all));
//! # Ok::<(), agent_core::Error>(())
//! ```
//!
//! # Features
//!
//! * `http` (default): [`HttpTransport`], HTTP/1.1 and HTTP/2 over hyper and rustls, and the search for [`local`] servers.
//! * `offline`: a stand-in for a model that needs neither key nor network, `offline:any` by name.
//! * `tokens` (default): exact token counts.
//! * `cache`: the same answer again, kept in memory or in a store of one's own.
//! * `compression`: answers compressed with Brotli or Zstandard; gzip and deflate are always read.
//! * `aws-lc-rs`: TLS by aws-lc-rs in place of ring.
//! * `bedrock`: Amazon Bedrock: requests signed with AWS's keys, and AWS's event streams.
//! * `aws-sdk`: the AWS SDK's own search for keys, with single sign-on and programs.
//! * `entra`: access tokens of Microsoft Entra for `azure`.
//! * `gcp`: access tokens of Google's cloud for `vertex`.
//! * `reqwest`: a `reqwest::Client` is a [`Transport`].
//! * `testing`: [`conformance`], the suite that every codec passes.

mod attempt;
mod auth;
pub mod batch;
pub mod breaker;
#[cfg(feature = "cache")]
pub mod cache;
mod call;
mod cassette;
mod codec;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod embed;
mod error;
pub mod failover;
mod files;
mod framing;
pub mod hedge;
mod identity;
mod language;
mod layered;
pub mod limit;
#[cfg(feature = "http")]
pub mod local;
mod model;
pub mod models;
#[cfg(feature = "offline")]
pub mod offline;
mod provider;
pub mod rank;
mod redact;
#[cfg(feature = "requests")]
mod request_reader;
pub mod retry;
pub mod router;
mod service;
pub mod tokens;
mod transport;
mod wire;
mod xml_tools;

#[cfg(feature = "testing")]
pub use agent_core::testing::{ScriptedModel, Seen, Turn};

#[cfg(feature = "cache")]
pub use self::cache::{CacheLayer, ResponseCache};
#[cfg(feature = "bedrock")]
pub use self::identity::AwsIdentity;
#[cfg(feature = "entra")]
pub use self::identity::EntraIdentity;
#[cfg(feature = "gcp")]
pub use self::identity::GoogleIdentity;
#[cfg(feature = "requests")]
pub use self::request_reader::{ParsedRequest, RequestReader};
#[cfg(feature = "http")]
pub use self::transport::{HttpTransport, HttpTransportBuilder};
pub use self::{
    auth::Auth,
    batch::{Batch, BatchId, BatchRequest, Batches, batches},
    breaker::CircuitBreaker,
    cassette::{Cassette, CassetteBuilder, CassetteMode},
    codec::{Codec, Decoder, Progress},
    error::ProviderError,
    failover::Failover,
    files::{Files, StoredFile, files},
    framing::{Framing, Splitter, SseEvent, SseSplitter},
    hedge::HedgeLayer,
    layered::LayeredModel,
    limit::{RateLimitLayer, RateLimiter},
    model::{Credentials, Signer},
    models::Catalogue,
    provider::{
        BatchApi, EmbedderBuilder, FileApi, Identity, KeyVariable, ModelBuilder, Place, Provider, Providers,
        RerankerBuilder, Wire, embedder, model, reranker,
    },
    retry::RetryLayer,
    router::ModelRouter,
    transport::{Body, Transport, TransportFn, transport_fn},
    wire::{
        anthropic::{AnthropicCodec, AnthropicEnvelope, AnthropicProfile},
        bedrock_converse::{BedrockCodec, BedrockProfile},
        blocks::Blocks,
        claude::ClaudeThinking,
        cohere::{CohereCodec, CohereProfile},
        gemini::{GeminiCodec, GeminiGeneration, GeminiProfile, GeminiSchemas},
        ollama::{OllamaCodec, OllamaProfile},
        openai_chat::OpenAiChatCodec,
        openai_responses::{OpenAiResponsesCodec, ResponsesProfile},
        profile::{DocumentForm, Profile, SystemRole},
    },
    xml_tools::XmlTools,
};
