//! Counting tokens: approximately, as OpenAI's models do, without counting anything twice, and as providers report them.
//!
//! | counter | how | when |
//! |---|---|---|
//! | [`ApproximateCounter`] | four characters are a token | no tokenizer is known, or speed is all |
//! | [`Tiktoken`] (feature `tokens`) | the tokenizer of the model | OpenAI's models, and a good guess for others |
//! | [`IncrementalCounter`] | another counter, each message once | a history is counted at every step |
//! | [`MediaCounter`] | another counter, and images as the model's provider counts them | messages hold images |
//! | [`CalibratedCounter`] | another counter, times what the provider's reports say | the model has a tokenizer of its own |
//!
//! They go together, and [`for_model`] puts them together.

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

/// The best counter for a model that is there without asking its provider: with the model's tokenizer (feature `tokens`; else four
/// characters are a token), with images as its provider counts them, each message counted once, and put right by what is
/// [learned](CalibratedCounter::learn).
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
