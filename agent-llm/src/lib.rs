//! Models: the wires that providers speak, the transport below them, and the layers above.
//!
//! | to | use |
//! |---|---|
//! | call a model | [`OpenAiChat`]: OpenAI and every server that speaks its Chat Completions; [`Profile`] knows their quirks |
//! | call a model the newer way | [`OpenAiResponses`]: OpenAI's Responses, with its reasoning and the tools that it runs itself |
//! | call Gemini | [`Gemini`]: the Gemini API, Vertex AI and proxies; [`GeminiProfile`] tells them apart |
//! | call Claude | [`Anthropic`]: Anthropic and servers that speak its Messages |
//! | try failed calls again | [`RetryLayer`] |
//! | ask another model when one fails | [`Failover`] |
//! | ask the model that fits the call best | [`ModelRouter`] |
//! | leave a failing model alone for a while | [`CircuitBreaker`] |
//! | not wait for a slow call | [`HedgeLayer`] |
//! | put tower layers around one model | [`LayeredModel`] |
//! | limit how many calls run at once | [tower's own layer](#layers) |
//! | give tools to a model that takes none | [`XmlTools`] |
//! | keep within a provider's rate limits, all agents together | [`RateLimiter`] |
//! | give the same answer again | [`ResponseCache`] |
//! | test against a real model without its network | [`Cassette`] |
//! | test without any model | [`ScriptedModel`] says what a test wrote down; [`offline`] answers from documents |
//! | find a model on this machine | [`local::find`] |
//! | count tokens | [`tokens`] |
//! | know a model's context window and prices | [`Catalogue`] |
//! | send requests some other way | [`Transport`], [`transport_fn`]; [`HttpTransport`] is the default |
//! | go through a proxy, trust other certificates, limit connections | [`HttpTransport::builder`] |
//! | add a wire | [`Codec`] and [`Decoder`], over [`HttpModel`]; [`SseSplitter`] and [`ProviderError`] help, and [`conformance`] checks it |
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
//! use agent_llm::{OpenAiChat, transport_fn};
//! use http::Response;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
//! let answer = r#"{"choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}]}"#;
//! let provider = transport_fn(move |_request| async move { Ok(Response::new(answer.into())) });
//! let model = OpenAiChat::builder("gpt-5").transport(provider).build()?;
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
//! use agent_llm::{LayeredModel, OpenAiChat, RetryLayer};
//! use tower::limit::GlobalConcurrencyLimitLayer;
//!
//! let eight_in_all = GlobalConcurrencyLimitLayer::new(8);
//! let large = OpenAiChat::builder("gpt-5").build()?;
//! let small = OpenAiChat::builder("gpt-5-mini").build()?;
//! // The limit is inside the retry: who waits to try again holds no place.
//! let large = LayeredModel::new(large, (RetryLayer::new(), eight_in_all.clone()));
//! let small = LayeredModel::new(small, (RetryLayer::new(), eight_in_all));
//! # Ok::<(), agent_core::Error>(())
//! ```
//!
//! # Features
//!
//! * `http` (default): [`HttpTransport`], HTTP/1.1 and HTTP/2 over hyper and rustls, and the search for [`local`] servers.
//! * `tokens` (default): exact token counts.
//! * `compression`: answers compressed with Brotli or Zstandard; gzip and deflate are always read.
//! * `reqwest`: a `reqwest::Client` is a [`Transport`].
//! * `testing`: [`conformance`], the suite that every codec passes.

mod attempt;
pub mod breaker;
pub mod cache;
mod cassette;
mod codec;
#[cfg(feature = "testing")]
pub mod conformance;
mod error;
pub mod failover;
pub mod hedge;
mod layered;
pub mod limit;
#[cfg(feature = "http")]
pub mod local;
mod model;
pub mod models;
pub mod offline;
mod redact;
pub mod retry;
pub mod router;
mod service;
mod sse;
pub mod tokens;
mod transport;
mod wire;
mod xml_tools;

#[cfg(feature = "testing")]
pub use agent_core::testing::{ScriptedModel, Seen, Turn};

#[cfg(feature = "http")]
pub use self::transport::{HttpTransport, HttpTransportBuilder};
pub use self::{
    breaker::CircuitBreaker,
    cache::{CacheLayer, ResponseCache},
    cassette::{Cassette, CassetteBuilder, CassetteMode},
    codec::{Codec, Decoder, ParsedRequest, Progress},
    error::ProviderError,
    failover::Failover,
    hedge::HedgeLayer,
    layered::LayeredModel,
    limit::{RateLimitLayer, RateLimiter},
    model::{Auth, Credentials, HttpModel, HttpModelBuilder},
    models::Catalogue,
    retry::RetryLayer,
    router::ModelRouter,
    sse::{SseEvent, SseSplitter},
    transport::{Body, Transport, TransportFn, transport_fn},
    wire::{
        anthropic::{Anthropic, AnthropicBuilder, AnthropicCodec, AnthropicProfile, ClaudeThinking},
        gemini::{Gemini, GeminiBuilder, GeminiCodec, GeminiGeneration, GeminiProfile, GeminiSchemas},
        openai_chat::{OpenAiChat, OpenAiChatBuilder, OpenAiChatCodec},
        openai_responses::{OpenAiResponses, OpenAiResponsesBuilder, OpenAiResponsesCodec, ResponsesProfile},
        profile::{Profile, SystemRole},
    },
    xml_tools::XmlTools,
};
