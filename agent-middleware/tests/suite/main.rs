//! The suites of agent-middleware, in one program.

mod approval;
#[cfg(feature = "code")]
mod code_mode;
mod common;
mod compaction;
mod delegation;
mod events;
mod from_fn;
mod limits;
mod logging;
mod prompts;
mod safety;
#[cfg(feature = "otlp-tls")]
mod telemetry;
mod tool_failures;
mod tools_and_models;
