//! AG-UI 1.0: the protocol of front ends, over server-sent events, or in its binary form if a client asks for it.
//!
//! [`Projection`] tells a run in the protocol's events; it needs no server. The server's part is `POST /ag-ui/{agent}`: a thread is a
//! session, and each request is a run or goes on with one. The front end's messages are not the history, which is the session's own;
//! `conversation` says how what is new in them is found.

mod binary;
mod endpoint;
mod event;
mod input;
mod outcome;
mod projection;
mod state;
mod turn;

pub(crate) use self::endpoint::router;
pub use self::{
    event::{AgUi, AgUiEvent},
    outcome::{Interrupt, Outcome, SubOutcome, TokenUsage},
    projection::{Projection, STATE},
    state::SharedState,
};
pub use crate::{conversation::interrupt_id, speech::Ending};
