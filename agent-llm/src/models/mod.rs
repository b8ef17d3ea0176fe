//! Model catalogue: context windows, abilities and prices.
//!
//! [`Catalogue`] contains the current models of the large providers, with the date on which they
//! were verified and the sources (`models.json` alongside this file). Applications can extend and
//! correct it.

mod catalogue;
mod entry;
mod name;
mod pricing;

pub(crate) use self::pricing::Pricing;
pub use self::{
    catalogue::Catalogue,
    entry::{LongPrices, ModelEntry, Price, Prices},
};
