//! Sessions outside of runs: who has which, what was said in them, and whose turn it is.
//!
//! [`Sessions`] lists and deletes the sessions of a user; a [`Session`] reads and edits one agent's side of one. Both read the
//! journal that the runs write to, so there is nothing to keep in step. A run finds its session by the name that
//! [`RunRequest::session`](agent_core::RunRequest::session) is given, for which a [`SessionId`] is taken as it is.

mod branch;
mod edit;
mod list;
mod session;

pub(crate) use self::branch::branch;
pub use agent_core::{journal::RunRecord, run::SessionId};

pub use self::{list::Sessions, session::Session};
