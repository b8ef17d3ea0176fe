//! What a call may use at most, and what that costs.

use std::sync::Arc;

use crate::{
    error::{Error, Result},
    llm::TokenCounter,
    usage::{PriceTable, Usage},
};

/// What a budget's calls are counted and priced with.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) prices: Option<Arc<dyn PriceTable>>,
    /// Without one, what [`Generous`](super::generous::Generous) says.
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
    /// What a call of `model` costs at most, in millionths of a US dollar, whatever the provider's cache makes of its prompt;
    /// 0 for a model without a price, if that is allowed.
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

    /// What a call used that is over, in millionths of a US dollar: by the budget's own table, or as the model reported it.
    pub(crate) fn cost(&self, asked: &str, answered: Option<&str>, usage: &Usage) -> Option<u64> {
        let own = self.prices.as_ref();
        let own =
            own.and_then(|prices| answered.and_then(|m| prices.cost(m, usage)).or_else(|| prices.cost(asked, usage)));
        own.or_else(|| usage.whole_cost())
    }

    /// The most tokens of the answer, and whether the request must be told so: a model keeps its own limit by itself.
    pub(crate) fn answer(&self, asked: Option<u64>, of_model: Option<u64>) -> (u64, bool) {
        match (asked, of_model) {
            (Some(asked), _) => (asked, false),
            (None, Some(limit)) => (limit, false),
            (None, None) => (self.answer_tokens, true),
        }
    }
}
