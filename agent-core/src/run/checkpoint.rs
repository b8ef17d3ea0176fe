//! Checkpoints: [`RunState`], of which [`Checkpoint`] is an alias, and the open turn.
//!
//! Applications store a checkpoint and submit it again; only executors and tools that display one
//! inspect its content.
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

pub use crate::state::{Begun, CallState, Checkpoint, ChildRun, PendingCall, PendingTurn, Phase, RunState};
