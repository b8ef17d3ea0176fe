//! Agent2Agent 0.3 over JSON-RPC: `POST /a2a/{agent}`, with the agent's card at `/a2a/{agent}/.well-known/agent-card.json`. A server of one
//! agent has its card at `/.well-known/agent-card.json`, too.
//!
//! A context is a session, and a task is a run. What a run asks, the task asks: it is `input-required` until a message of that task
//! answers. A message is taken once, however often it comes under its `messageId`.

mod card;
mod endpoint;
mod message;
mod push;
mod rpc;
mod task;
mod told;

pub(crate) use self::{
    endpoint::{cards, router},
    task::of_view,
};
