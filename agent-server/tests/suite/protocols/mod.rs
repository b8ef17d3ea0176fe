//! Protocols: encoders, and endpoints over real sockets.

mod a2a;
mod ag_ui;
mod mcp;
mod openai;
mod relayed;
pub(crate) mod scenes;
mod served;
mod stdio;
mod ui_stream;
