//! Agents as a [Restate](https://restate.dev) service: runs move between machines, wait for days
//! without a process, and survive crashes of the process and of the server.
//!
//! An [`AgentEndpoint`] serves agents. [`Restate`], a [`Dispatch`](agent_dispatch::Dispatch),
//! sends runs to them from anywhere. A [`RestateJournal`] gives the framework's readers access to
//! the sessions. The guide is `docs/guide/restate.md`; RFC 0047 records the design decision.
//!
//! ```
//! use agent_core::testing::{ScriptedModel, Turn};
//! use agent_exec::Agent;
//! use agent_restate::AgentEndpoint;
//!
//! let agent = Agent::builder("support", ScriptedModel::new([Turn::text("hello")])).build()?;
//! let endpoint = AgentEndpoint::builder().agent(agent.clone()).build()?;
//! let refused = AgentEndpoint::builder().agent(agent.clone()).agent(agent).build();
//! assert!(refused.is_err_and(|e| e.message().contains("two agents 'support'")));
//! # let _ = endpoint;
//! # Ok::<(), agent_core::Error>(())
//! ```
//!
//! The server has the Business Source License 1.1; its Rust SDK, which this crate uses, is
//! MIT-licensed.

mod blobs;
mod callers;
mod client;
mod endpoint;
mod engine;
mod handler;
mod http;
mod journal;
mod known;
mod notes;
mod outcome;
mod past;
mod place;
mod present;
mod record;
#[cfg(feature = "s3")]
mod s3;
mod service;
mod session;
mod step_log;
mod tell;

#[cfg(feature = "s3")]
pub use self::s3::S3Blobs;
pub use self::{
    blobs::{BlobStore, FileBlobs},
    client::{Restate, RestateBuilder},
    endpoint::{AgentEndpoint, AgentEndpointBuilder},
    journal::RestateJournal,
    outcome::Outcome,
    place::open_blobs,
};

/// Default name of the service.
pub const DEFAULT_SERVICE: &str = "Sessions";

/// The guide, compiled as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/restate.md")]
mod guide {}
