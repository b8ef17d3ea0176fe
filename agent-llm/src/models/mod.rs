//! What is known of models: their context windows, what they can do, and what they cost.
//!
//! [`Catalogue`] knows the current models of the large providers, with the date on which that was looked up and its sources
//! (`models.json` beside this file). Applications add to it and correct it.

mod catalogue;
mod entry;
mod name;
mod pricing;

pub(crate) use self::pricing::Pricing;
pub use self::{
    catalogue::Catalogue,
    entry::{LongPrices, ModelEntry, Price, Prices},
};
