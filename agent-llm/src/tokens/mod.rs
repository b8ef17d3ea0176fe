//! Token counters: approximate, exact for OpenAI's models, incremental, and calibrated by the usage
//! that providers report.
//!
//! | counter | method | use |
//! |---|---|---|
//! | [`ApproximateCounter`] | four characters per token | no tokenizer is known, or speed matters most |
//! | [`Tiktoken`] (feature `tokens`) | the tokenizer of the model | OpenAI's models, and a good estimate for others |
//! | [`IncrementalCounter`] | another counter, each message once | a history is counted at every step |
//! | [`MediaCounter`] | another counter, and images by the provider's rule | messages contain images |
//! | [`CalibratedCounter`] | another counter, corrected by reported usage | the model has its own tokenizer |
//!
//! They can be combined; [`for_model`] returns a suitable combination.

mod calibrated;
mod incremental;
mod kept;
mod media;
mod pixels;
#[cfg(feature = "tokens")]
mod tiktoken;

pub use agent_core::model::ApproximateCounter;

#[cfg(feature = "tokens")]
pub use self::tiktoken::Tiktoken;
pub use self::{
    calibrated::{CalibratedCounter, Calibration, CalibrationLayer},
    incremental::IncrementalCounter,
    media::{MediaCounter, MediaRule},
};

/// Returns the best counter for a model that needs no request to its provider: with the model's
/// tokenizer (feature `tokens`; else four characters per token), images counted by the provider's
/// rule, each message counted once, and corrected by what is [learned](CalibratedCounter::learn).
///
/// ```
/// use agent_core::{Media, Part, TokenCounter, UserMessage};
///
/// let counter = agent_llm::tokens::for_model("anthropic:claude-sonnet-4-5");
/// assert_eq!(counter.factor(), 1.0, "nothing was learned yet");
/// assert!(counter.text("How many tokens is this?") > 4);
/// ```
pub fn for_model(model: &str) -> CalibratedCounter {
    let name = model.rsplit(['/', ':']).find(|part| part.contains(char::is_alphabetic)).unwrap_or(model);
    #[cfg(feature = "tokens")]
    let text = Tiktoken::for_model(name);
    #[cfg(not(feature = "tokens"))]
    let text = ApproximateCounter;
    CalibratedCounter::new(IncrementalCounter::new(MediaCounter::new(text, MediaRule::for_model(name))))
}
