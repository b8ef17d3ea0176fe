//! The server over real sockets, with a plain HTTP client.

mod abuse;
mod dispatch;
mod document;
mod drain;
mod elsewhere;
mod events;
mod files;
mod health;
mod kept;
#[cfg(feature = "oidc")]
mod oidc;
mod questions;
mod relay;
mod replaced;
mod runs;
mod searches;
mod sessions;
mod spending;
mod stops;
pub(crate) mod support;
mod teams;
mod tenants;
pub(crate) mod webhooks;
mod worker_admin;
mod workers;
