//! OpenAI's Chat Completions and Responses: any chat client or SDK can use an agent, by the agent's name as the model's.
//!
//! The agent's own tools run here. Those that the request brings are called at the client: the run waits, in the journal, and the
//! call's id says which run it is, so a client that knows nothing of runs goes on with it by sending the result.

mod again;
mod begin;
mod chat;
mod endpoint;
mod error;
mod items;
mod response;
mod wire;

pub(crate) use self::{begin::SESSION, endpoint::router};
