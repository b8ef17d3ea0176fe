//! Counting tokens: approximately, as OpenAI's models do, and without counting anything twice.
//!
//! | counter | how | when |
//! |---|---|---|
//! | [`ApproximateCounter`] | four characters are a token | no tokenizer is known, or speed is all |
//! | [`Tiktoken`] (feature `tokens`) | the tokenizer of the model | OpenAI's models, and a good guess for others |
//! | [`IncrementalCounter`] | another counter, each message once | a history is counted at every step |

mod approximate;
mod incremental;
mod kept;
mod shape;
#[cfg(feature = "tokens")]
mod tiktoken;

#[cfg(feature = "tokens")]
pub use self::tiktoken::Tiktoken;
pub use self::{approximate::ApproximateCounter, incremental::IncrementalCounter};
