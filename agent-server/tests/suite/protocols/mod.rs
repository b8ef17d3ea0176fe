//! Protocols: encoders, and endpoints over real sockets.

mod a2a;
mod a2a_v1;
mod ag_ui;
mod mcp;
mod openai;
mod relayed;
pub(crate) mod scenes;
mod served;
mod stdio;
mod ui_stream;
