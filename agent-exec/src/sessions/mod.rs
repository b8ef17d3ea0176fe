//! Sessions outside of runs: list, read, edit and delete them.
//!
//! [`Sessions`] lists and deletes the sessions of a user; a [`Session`] reads and edits one agent's
//! side of one. Both read the journal that the runs write to, so there is no second copy to keep in
//! sync. A run finds its session by the name passed to
//! [`RunRequest::session`](agent_core::RunRequest::session), which also accepts a [`SessionId`].

mod branch;
mod edit;
mod list;
mod session;

pub(crate) use self::branch::branch;
pub use agent_core::{journal::RunRecord, run::SessionId};

pub use self::{list::Sessions, session::Session};
