//! Protocols: what is told alone, and endpoints over real sockets.

mod ag_ui;
mod openai;
mod scenes;
mod served;
