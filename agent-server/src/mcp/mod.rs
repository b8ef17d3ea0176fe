//! Model Context Protocol over HTTP: `/mcp/{agent}`, an agent as a server with one tool.
//!
//! A client's connection is a session, and each call of the tool is a run in it, with all rules for
//! the caller's runs. Questions of the run are forwarded to the client's user if the client
//! supports elicitation. Cancelling the call cancels the run.

mod endpoint;
mod runs;

pub(crate) use self::endpoint::router;
