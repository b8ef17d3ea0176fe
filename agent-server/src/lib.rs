//! HTTP server for agents: clients start runs, stream their events, answer their questions, and
//! reconnect later.
//!
//! [`Server`] combines agents and settings; its [`router`](Server::router) can be nested into
//! another application, or [`serve`](Server::serve)d directly. [`router`] is a shortcut.
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
//! # Modules
//!
//! Modules, from the bottom up: `error` (error responses), `webhooks` (notifications about runs),
//! `caller` and `spending` (authenticated callers and their money limits), `extract` and `sse`
//! (request bodies, event streams), `metrics`, `export` (sessions for people), `files` (uploads),
//! `app` (agents, runs and sessions: the base of all protocols), `auth`, `guard`, `speech` and
//! `follow` (a run as one ordered stream of content, and its encoding), `client_tools`,
//! `conversation` (requests of front ends), `api` (the Runs API), [`ag_ui`], `ui_stream`, `openai`,
//! `a2a`, `mcp` (further protocols), `teams` (teams of agents), `studio` (the web UI, a client of the Runs API), `router`,
//! `listen`, `server`, `stdio` (editors and other programs that start this one).

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
mod snake_case;
mod speech;
mod spending;
mod sse;
mod stdio;
mod studio;
mod teams;
mod trace;
mod ui_stream;
mod webhooks;
mod worker_admin;

#[cfg(feature = "oidc")]
pub use self::auth::{Oidc, OidcBuilder};
pub use self::{
    app::{App, FoundRun, Notes, RunStatus, RunView, Served, Start, Waiting, answer_of, request_of, shape},
    auth::{Key, Keys},
    caller::{Caller, CallerLimits, Scope, TenantLimits},
    decision::decision,
    error::ApiError,
    files::{ContentStore, DiskFiles, FileInfo, Files, MemoryFiles, StoreUsage, Turn},
    server::{Server, ServerBuilder},
    spending::Spending,
    studio::{OneTenant, Studio},
    teams::ServedTeam,
    ui_stream::UiStream,
    webhooks::{HookEvent, Webhook, Webhooks},
    worker_admin::WorkerAdmin,
};

/// Returns the router of a [`Server`] with these agents and safe defaults: local requests only,
/// without keys.
///
/// # Errors
/// The errors of [`ServerBuilder::build`].
pub fn router(agents: impl IntoIterator<Item = impl Into<Served>>) -> agent::Result<axum::Router> {
    Ok(Server::builder().agents(agents).build()?.router())
}

/// The guide, compiled as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/server.md")]
mod guide {}

/// The guide to services of other applications, compiled as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/services.md")]
mod services {}
