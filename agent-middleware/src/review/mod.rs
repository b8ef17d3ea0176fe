//! Looking at an answer before the run ends with it.
//!
//! [`Judge`] is the middleware. Here is what it is told and what it says: for those who set it up from a file,
//! and for those who judge with code of their own.
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
