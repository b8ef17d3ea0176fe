//! OpenAI's Chat Completions and Responses: any chat client or SDK can use an agent, with the
//! agent's name as the model.
//!
//! The agent's own tools run in the server. The client executes the tools of its request: the run
//! is suspended in the journal, and the call's id contains the run's id, so that a client without
//! knowledge of runs resumes the run by sending the result.

mod again;
mod begin;
mod chat;
mod endpoint;
mod error;
mod items;
mod response;
mod wire;

pub(crate) use self::{begin::SESSION, endpoint::router};
