//! Models: the wires that providers speak, the transport below them, and the layers above.
//!
//! | to | use |
//! |---|---|
//! | call a model | [`OpenAiChat`]: OpenAI and every server that speaks its Chat Completions; [`Profile`] knows their quirks |
//! | try failed calls again | [`RetryLayer`] |
//! | give tools to a model that takes none | [`XmlTools`] |
//! | test against a real model without its network | [`Cassette`] |
//! | test without any model | [`ScriptedModel`] says what a test wrote down; [`offline`] answers from documents |
//! | find a model on this machine | [`local::find`] |
//! | count tokens | [`tokens`] |
//! | send requests some other way | [`Transport`], [`transport_fn`]; [`HyperTransport`] is the default |
//! | add a wire | [`Codec`] and [`Decoder`], over [`HttpModel`]; [`SseSplitter`] and [`ProviderError`] help |
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
//! # Features
//!
//! * `http` (default): [`HyperTransport`], HTTP/1.1 over hyper and rustls, and the search for [`local`] servers.
//! * `scripted` (default): [`ScriptedModel`].
//! * `tokens` (default): exact token counts.

mod cassette;
mod codec;
mod error;
#[cfg(feature = "http")]
pub mod local;
mod model;
pub mod offline;
mod redact;
pub mod retry;
mod sse;
pub mod tokens;
mod transport;
mod wire;
mod xml_tools;

#[cfg(feature = "scripted")]
pub use agent_core::testing::{ScriptedModel, Seen, Turn};

#[cfg(feature = "http")]
pub use self::transport::HyperTransport;
pub use self::{
    cassette::{Cassette, CassetteBuilder, CassetteMode},
    codec::{Codec, Decoder, ParsedRequest, Progress},
    error::ProviderError,
    model::{Auth, HttpModel, HttpModelBuilder},
    retry::RetryLayer,
    sse::{SseEvent, SseSplitter},
    transport::{Body, Transport, TransportFn, transport_fn},
    wire::openai_chat::{MaxTokens, OpenAiChat, OpenAiChatBuilder, OpenAiChatCodec, Profile, SystemRole},
    xml_tools::XmlTools,
};
