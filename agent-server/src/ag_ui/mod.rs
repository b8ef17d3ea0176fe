//! AG-UI 1.0, the protocol of front ends: over server-sent events, or in its binary form on
//! request.
//!
//! [`Projection`] converts the events of a run into the protocol's events, independently of the
//! server. The server's endpoint is `POST /ag-ui/{agent}`: a thread is a session, and each request
//! starts a run or resumes one. The session's own history is authoritative, not the front end's
//! messages; `conversation` documents how new messages are detected.

mod binary;
mod endpoint;
mod event;
mod input;
mod outcome;
mod projection;
mod state;
mod turn;

pub(crate) use self::{endpoint::router, input::RunAgentInput};
pub use self::{
    event::{AgUi, AgUiEvent},
    outcome::{Interrupt, Outcome, SubOutcome, TokenUsage},
    projection::{Projection, STATE},
    state::SharedState,
};
pub use crate::{conversation::interrupt_id, speech::Ending};
