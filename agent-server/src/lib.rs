//! Agents over HTTP: people and programs start runs, watch them, answer what they ask, and come back later.
//!
//! [`Server`] is what is served and how; its [`router`](Server::router) is nested into an application of your own, or
//! [`serve`](Server::serve)d as it is. [`router`] is the short way.
//!
//! ```
//! use agent::{Agent, testing::{ScriptedModel, Turn}};
//!
//! # fn main() -> agent::Result<()> {
//! let agent = Agent::builder("greeter", ScriptedModel::new([Turn::text("Hello!")])).build()?;
//! let app = axum::Router::new().merge(agent_server::router([agent])?);
//! # let _ = app;
//! # Ok(()) }
//! ```
//!
//! # The rooms
//!
//! From the ground up: `error` (what a client is told), `webhooks` (who is told of runs), `caller` and `spending` (who asks, and what that may cost), `extract` and `sse` (bodies in, events out), `metrics`,
//! `export` (sessions for people), `files` (what clients upload), `app` (the agents, their runs, their sessions: what every protocol stands on), `auth`, `guard`,
//! `speech` and `follow` (a run as one story, and told to its end), `client_tools`, `conversation` (what a front end says), `api` (the Runs
//! API), [`ag_ui`], `ui_stream`, `openai`, `a2a`, `mcp` (the protocols of others), `studio` (the page for people, a client of the Runs API), `router`, `listen`, `server`,
//! `stdio` (an editor, and programs that start this one).

mod a2a;
pub mod ag_ui;
mod api;
mod app;
mod auth;
mod caller;
mod client_tools;
mod clock;
mod conversation;
mod decision;
mod error;
pub mod export;
mod extract;
mod files;
mod follow;
mod guard;
mod health;
mod listen;
mod mcp;
mod metrics;
mod openai;
mod router;
mod server;
mod speech;
mod spending;
mod sse;
mod stdio;
mod studio;
#[cfg(feature = "telemetry")]
mod trace;
mod ui_stream;
mod webhooks;

#[cfg(feature = "oidc")]
pub use self::auth::{Oidc, OidcBuilder};
pub use self::{
    app::{App, FoundRun, Notes, RunStatus, RunView, Served, Start, Waiting, answer_of, request_of, shape},
    auth::{Key, Keys},
    caller::{Caller, CallerLimits, Scope, TenantLimits},
    decision::decision,
    error::ApiError,
    files::{ContentStore, DiskFiles, FileInfo, Files, MemoryFiles, StoreUsage},
    server::{Server, ServerBuilder},
    spending::Spending,
    studio::{OneTenant, Studio},
    ui_stream::UiStream,
    webhooks::{HookEvent, Webhook, Webhooks},
};

/// The router of a [`Server`] with these agents and what is safe by default: requests of this machine alone, without keys.
///
/// # Errors
/// As [`ServerBuilder::build`].
pub fn router(agents: impl IntoIterator<Item = impl Into<Served>>) -> agent::Result<axum::Router> {
    Ok(Server::builder().agents(agents).build()?.router())
}

/// The guide, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/server.md")]
mod guide {}
