//! Agent2Agent 0.3 and 1.0 over JSON-RPC, `POST /a2a/{agent}`, and 1.0 over HTTP+JSON, below
//! `/a2a/{agent}`, with the agent's card at `/a2a/{agent}/.well-known/agent-card.json`. A server with a single agent also serves its card at
//! `/.well-known/agent-card.json`.
//!
//! A context is a session, and a task is a run. A task whose run waits for answers is
//! `input-required` until a message to the task answers them. The `messageId` is the idempotency
//! key of a message.

mod card;
mod endpoint;
mod list;
mod message;
mod push;
mod rest;
mod rpc;
mod task;
mod told;
mod version;

pub(crate) use self::{
    endpoint::{cards, router},
    push::notification,
};
