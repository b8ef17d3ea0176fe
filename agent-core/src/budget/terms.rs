//! Token and cost bounds of model calls.

use std::sync::Arc;

use crate::{
    error::{Error, Result},
    llm::TokenCounter,
    usage::{PriceTable, Usage},
};

/// Counter, prices and defaults for a budget's calls.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) prices: Option<Arc<dyn PriceTable>>,
    /// Token counter; [`UpperBound`](super::generous::UpperBound) if `None`.
    pub(crate) counter: Option<Arc<dyn TokenCounter>>,
    pub(crate) allow_unpriced: bool,
    pub(crate) answer_tokens: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { prices: None, counter: None, allow_unpriced: false, answer_tokens: 8_192 }
    }
}

pub(crate) fn no_prices() -> Error {
    Error::config(
        "a cap on money needs prices: give the budget a table with Budget::builder().prices(..), or say allow_unpriced()",
    )
}

impl Terms {
    /// Returns the maximum cost of a call of `model`, in millionths of a US dollar, for every
    /// outcome of the provider's prompt cache; 0 for a model without a price, if that is allowed.
    pub(crate) fn most(&self, model: &str, prompt: u64, answer: u64) -> Result<u64> {
        let Some(prices) = &self.prices else {
            return if self.allow_unpriced { Ok(0) } else { Err(no_prices()) };
        };
        let read = Usage::new(prompt, answer);
        let mut written = Usage::new(0, answer);
        written.cache_write = prompt;
        let mut written_long = written;
        written_long.cache_write_long = prompt;
        match prices.cost(model, &read) {
            Some(plain) => {
                let written = [&written, &written_long].into_iter().filter_map(|usage| prices.cost(model, usage));
                Ok(written.fold(plain, u64::max))
            }
            None if self.allow_unpriced => Ok(0),
            None => Err(Error::config(format!(
                "model '{model}' has no price, and its run has a cap on money: add it to the budget's price table, or say \
                 allow_unpriced()"
            ))),
        }
    }

    /// Returns the cost of a completed call, in millionths of a US dollar: from the budget's price
    /// table, or else as the model reported it.
    pub(crate) fn cost(&self, asked: &str, answered: Option<&str>, usage: &Usage) -> Option<u64> {
        let own = self.prices.as_ref();
        let own =
            own.and_then(|prices| answered.and_then(|m| prices.cost(m, usage)).or_else(|| prices.cost(asked, usage)));
        own.or_else(|| usage.whole_cost())
    }

    /// Returns the maximum number of answer tokens, and whether the request must set it: a model
    /// enforces its own limit.
    pub(crate) fn answer(&self, asked: Option<u64>, of_model: Option<u64>) -> (u64, bool) {
        match (asked, of_model) {
            (Some(asked), _) => (asked, false),
            (None, Some(limit)) => (limit, false),
            (None, None) => (self.answer_tokens, true),
        }
    }
}
