//! The server through real sockets, by a plain HTTP client.

mod abuse;
mod document;
mod drain;
mod events;
mod files;
mod questions;
mod runs;
mod sessions;
mod support;
mod tenants;
mod webhooks;
