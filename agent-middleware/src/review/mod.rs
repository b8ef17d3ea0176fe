//! Review of answers before the run ends.
//!
//! [`Judge`] is the middleware. This module contains its configuration and the interface for custom
//! reviewers.
//!
//! ```
//! use agent_core::{Exit, RunCx};
//! use agent_middleware::{Judge, review::{Judgement, OnRejected}};
//!
//! let short = Judge::by(|_: RunCx, exit: Exit| async move {
//!     Ok(match exit.answer.len() {
//!         ..=400 => Judgement::Stop,
//!         more => Judgement::Continue(format!("{more} characters are too many: 400 at most.")),
//!     })
//! });
//! let strict = short.max_rounds(1).on_rejected(OnRejected::Error);
//! # drop(strict);
//! ```

mod critic;
mod judge;
mod reviewer;

pub use self::{
    judge::{Judge, JudgeConfig, OnRejected},
    reviewer::{Judgement, Reviewer},
};
