//! Counting tokens: approximately, as OpenAI's models do, without counting anything twice, and as providers report them.
//!
//! | counter | how | when |
//! |---|---|---|
//! | [`ApproximateCounter`] | four characters are a token | no tokenizer is known, or speed is all |
//! | [`Tiktoken`] (feature `tokens`) | the tokenizer of the model | OpenAI's models, and a good guess for others |
//! | [`IncrementalCounter`] | another counter, each message once | a history is counted at every step |
//! | [`CalibratedCounter`] | another counter, times what the provider's reports say | the model has a tokenizer of its own |
//!
//! They go together: `CalibratedCounter::new(IncrementalCounter::new(Tiktoken::for_model(model)))`.

mod calibrated;
mod incremental;
mod kept;
#[cfg(feature = "tokens")]
mod tiktoken;

pub use agent_core::model::ApproximateCounter;

#[cfg(feature = "tokens")]
pub use self::tiktoken::Tiktoken;
pub use self::{
    calibrated::{CalibratedCounter, Calibration, CalibrationLayer},
    incremental::IncrementalCounter,
};
