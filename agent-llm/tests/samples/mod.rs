//! What the servers of each wire say: one row a wire, for every test that is about all of them.
#![allow(dead_code, reason = "each test binary uses a part")]

mod openai_chat;

use std::sync::Arc;

use agent_llm::{Codec, conformance::Samples};

/// One wire.
pub(crate) struct Row {
    pub(crate) wire: &'static str,
    pub(crate) codec: fn() -> Arc<dyn Codec>,
    pub(crate) samples: fn() -> Samples,
}

/// All wires.
pub(crate) const ROWS: &[Row] = &[openai_chat::ROW];
