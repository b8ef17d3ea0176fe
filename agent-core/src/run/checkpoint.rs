//! Where a run stands: [`RunState`], which is what a [`Checkpoint`] holds, and the turn under way.
//!
//! Applications keep a checkpoint and hand it back; only executors and tools that show one look inside.
//!
//! ```
//! use agent_core::run::checkpoint::{Checkpoint, Phase};
//!
//! fn waits_for(checkpoint: &Checkpoint) -> Vec<&str> {
//!     match checkpoint.phase {
//!         Phase::Ended(_) => Vec::new(),
//!         _ => checkpoint.questions.iter().map(|question| question.kind.as_str()).collect(),
//!     }
//! }
//! # let _ = waits_for;
//! ```

pub use crate::state::{Begun, CallState, Checkpoint, PendingCall, PendingTurn, Phase, RunState};
