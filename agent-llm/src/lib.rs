//! LLM client: the wire protocols of the providers, the HTTP transport below them, and middleware
//! layers above.
//!
//! | to | use |
//! |---|---|
//! | call a model | [`model`]: by its name, `provider:model` |
//! | call a custom server | [`Provider`], or an entry in a file: [`Providers`] is the table of all known providers |
//! | adapt to a server's dialect | [`Profile`] for OpenAI's wires, [`AnthropicProfile`], [`GeminiProfile`], [`CohereProfile`], [`BedrockProfile`], [`OllamaProfile`] |
//! | retry failed calls | [`RetryLayer`] |
//! | fall back to another model on failure | [`Failover`] |
//! | route each call to the most suitable model | [`ModelRouter`] |
//! | run many requests in a batch at half the price, within a day | [`batches`] |
//! | store files at a provider | [`files()`] |
//! | stop calling a failing model for a while | [`CircuitBreaker`] |
//! | hedge slow calls | [`HedgeLayer`] |
//! | wrap one model in tower layers | [`LayeredModel`] |
//! | limit concurrent calls | [tower's own layer](#layers) |
//! | give tools to a model without tool calling | [`XmlTools`] |
//! | share a provider's rate limits among all agents | [`RateLimiter`] |
//! | cache answers | [`ResponseCache`] |
//! | record and replay a real model's HTTP traffic in tests | [`Cassette`] |
//! | test without any model | [`ScriptedModel`] returns scripted answers; `offline` answers from documents |
//! | detect a model server on this machine, pull a model | [`local::find`], [`local::Ollama`] |
//! | count tokens | [`tokens`] |
//! | look up a model's context window and prices | [`Catalogue`] |
//! | replace the HTTP client | [`Transport`], [`transport_fn`]; [`HttpTransport`] is the default |
//! | configure proxies, trusted certificates, connection limits | [`HttpTransport::builder`] |
//! | embed texts, and rerank documents | [`embedder`], [`embed`]; [`reranker`], [`rank`] |
//! | add a wire | [`Codec`] and [`Decoder`], and [`ModelBuilder::new`] for them; [`Framing`] and [`ProviderError`] help, and [`conformance`] checks it |
//!
//! Every message keeps the provider's original JSON alongside the parsed content, and sends it back
//! to that provider unchanged. A streamed message is equal to the message of a non-streamed
//! response.
//!
//! # Example
//!
//! A model over an in-process transport instead of a network:
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
//! All layers in this crate are tower layers and combine with tower's own: they wrap the calls of
//! an agent (its builder's `model_layer`) or one model ([`LayeredModel`]). A concurrency limit, for
//! example, is shared by all clones of the model that it wraps; a `GlobalConcurrencyLimitLayer` is
//! shared by everything that it wraps:
//!
//! ```
//! use agent_llm::{LayeredModel, RetryLayer, model};
//! use tower::limit::GlobalConcurrencyLimitLayer;
//!
//! let eight_in_all = GlobalConcurrencyLimitLayer::new(8);
//! let large = model("openai:gpt-5").api_key("sk-..").retries(0).build()?;
//! let small = model("openai:gpt-5-mini").api_key("sk-..").retries(0).build()?;
//! // The limit is inside the retry: a call that waits for its next attempt holds no permit.
//! let large = LayeredModel::new(large, (RetryLayer::new(), eight_in_all.clone()));
//! let small = LayeredModel::new(small, (RetryLayer::new(), eight_in_all));
//! # Ok::<(), agent_core::Error>(())
//! ```
//!
//! # Features
//!
//! * `http` (default): [`HttpTransport`], HTTP/1.1 and HTTP/2 over hyper and rustls, and detection
//!   of [`local`] servers.
//! * `offline`: a stand-in for a model that needs neither key nor network, named `offline:any`.
//! * `tokens` (default): exact token counts.
//! * `cache`: response cache, in memory or in a custom store.
//! * `compression`: answers compressed with Brotli or Zstandard; gzip and deflate are always
//!   supported.
//! * `aws-lc-rs`: TLS by aws-lc-rs instead of ring.
//! * `bedrock`: Amazon Bedrock: requests signed with AWS credentials, and AWS event streams.
//! * `aws-sdk`: the AWS SDK's credential chain, with single sign-on and credential processes.
//! * `entra`: Microsoft Entra access tokens for `azure`.
//! * `gcp`: Google Cloud access tokens for `vertex`.
//! * `images`: images that exceed a provider's limits are scaled; without it, a text replaces them.
//! * `reqwest`: implements [`Transport`] for `reqwest::Client`.
//! * `testing`: [`conformance`], the test suite that every codec passes.

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
#[doc(hidden)]
pub use self::wire::surrogates::mend_surrogates;
pub use self::{
    auth::Auth,
    batch::{Batch, BatchId, BatchRequest, Batches, batches},
    breaker::CircuitBreaker,
    cassette::{Cassette, CassetteBuilder, CassetteMode},
    codec::{Adapted, Codec, Decoder, Progress},
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
        profile::{Dialect, DocumentForm, Profile, SystemRole},
    },
    xml_tools::XmlTools,
};
