//! Where a run stands.

pub use super::state::{Begun, CallState, Checkpoint, PendingCall, PendingTurn, Phase, RunState};
