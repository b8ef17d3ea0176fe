//! The suites of agent-server, in one program.

mod protocols;
mod server;
mod studio;
#[cfg(feature = "telemetry")]
mod traces;
mod ways;
