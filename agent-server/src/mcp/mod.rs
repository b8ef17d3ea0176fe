//! The Model Context Protocol over HTTP: `/mcp/{agent}`, an agent as a server of one tool.
//!
//! A client's connection is a session, and each call of the tool is a run in it, with all that holds for runs of the caller's. What the run
//! asks is put to the client's user, if the client can do that. A call that the client gives up is cancelled.

mod endpoint;
mod runs;

pub(crate) use self::endpoint::router;
