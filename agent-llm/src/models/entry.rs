//! One model: [`ModelEntry`] and its [`Prices`].

use agent_core::{Usage, model::Modality};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Known facts about a model. Unknown facts are unset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Provider that serves the model at these prices: its name in
    /// [`ModelInfo`](agent_core::ModelInfo).
    pub provider: String,
    /// Other names of the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Context window: maximum tokens of a request and its answer together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_context: Option<u64>,
    /// Maximum tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// True if the model supports tool calling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// True if the provider enforces a JSON Schema, also in combination with tools. If unset: as
    /// the provider's other models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<bool>,
    /// Input modalities. Empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<Modality>,
    /// Output modalities. Empty for text only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<Modality>,
    /// True if the model reasons before it answers, always or on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Default length of vectors, for embedding models. Their [`max_context`](Self::max_context) is
    /// the maximum length of one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u64>,
    /// Prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Prices>,
    /// Date on which the entry was verified, if older than the catalogue's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<String>,
    /// Note for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ModelEntry {
    /// Returns true if the model accepts this modality, such as images; `None` if unknown.
    pub fn takes(&self, modality: Modality) -> Option<bool> {
        (!self.input.is_empty()).then(|| self.input.contains(&modality))
    }
}

/// Prices of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Prices {
    /// Uncached input.
    pub input: Price,
    /// Input read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Price>,
    /// Input written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Price>,
    /// Input written to the cache with the long lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long: Option<Price>,
    /// Output, including reasoning. Zero for an embedding model.
    #[serde(default)]
    pub output: Price,
    /// Different prices for calls with a long prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<Box<LongPrices>>,
}

/// Prices of all tokens of a call with a long prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LongPrices {
    /// Maximum number of prompt tokens at the normal prices.
    pub over: u64,
    /// Prices beyond that.
    pub price: Prices,
}

/// US dollars per million tokens, stored in millionths; in JSON a number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price(#[cfg_attr(feature = "schema", schemars(with = "f64", range(min = 0.0, max = 1e9)))] u64);

impl Price {
    /// Creates a price from millionths of a US dollar per million tokens.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the price in millionths of a US dollar per million tokens.
    pub const fn micros(self) -> u64 {
        self.0
    }
}

impl Prices {
    /// Returns the prices multiplied by `share`.
    #[must_use]
    pub(super) fn times(&self, share: f64) -> Self {
        let times = |price: Price| Price((price.0 as f64 * share).round() as u64);
        let long = |long: &LongPrices| Box::new(LongPrices { over: long.over, price: long.price.times(share) });
        Self {
            input: times(self.input),
            cached: self.cached.map(times),
            cache_write: self.cache_write.map(times),
            cache_write_long: self.cache_write_long.map(times),
            output: times(self.output),
            long: self.long.as_deref().map(long),
        }
    }

    /// Returns the prices without those for cache reads and writes.
    pub(super) fn without_cache(mut self) -> Self {
        (self.cached, self.cache_write, self.cache_write_long) = (None, None, None);
        self.long = self.long.map(|long| Box::new(LongPrices { over: long.over, price: long.price.without_cache() }));
        self
    }

    /// Returns the cost of one call's `usage` in millionths of a US dollar, rounded; `None` if it
    /// includes something without a price.
    pub fn cost(&self, usage: &Usage) -> Option<u64> {
        if let Some(long) = &self.long
            && usage.calls <= 1
            && usage.prompt() > long.over
        {
            return long.price.cost(usage);
        }
        let short = usage.cache_write.saturating_sub(usage.cache_write_long);
        let used = [
            (usage.input, Some(self.input)),
            (usage.cached, self.cached),
            (short, self.cache_write),
            (usage.cache_write - short, self.cache_write_long),
            (usage.output, Some(self.output)),
        ];
        let used = used.into_iter().filter(|(tokens, _)| *tokens > 0);
        let costs = used.map(|(tokens, price)| price.map(|price| u128::from(tokens) * u128::from(price.0)));
        let cost = costs.sum::<Option<u128>>()?;
        u64::try_from((cost + 500_000) / 1_000_000).ok()
    }
}

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0 as f64 / 1e6).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        if !(0.0..=1e9).contains(&dollars) {
            return Err(D::Error::custom(format!("{dollars} is no price: US dollars per million tokens are expected")));
        }
        Ok(Self((dollars * 1e6).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prices(json: serde_json::Value) -> Prices {
        serde_json::from_value(json).expect("prices")
    }

    fn usage(input: u64, cached: u64, write: u64, long: u64, output: u64) -> Usage {
        let mut usage = Usage::new(input, output);
        (usage.cached, usage.cache_write, usage.cache_write_long, usage.reasoning) =
            (cached, write + long, long, output / 2);
        usage
    }

    #[test]
    fn every_token_costs_once() {
        let prices =
            prices(json!({"input": 3, "cached": 0.3, "cache_write": 3.75, "cache_write_long": 6, "output": 15}));
        let million = 1_000_000;
        assert_eq!(prices.cost(&usage(million, 0, 0, 0, 0)), Some(3_000_000));
        assert_eq!(prices.cost(&usage(0, million, 0, 0, 0)), Some(300_000));
        assert_eq!(prices.cost(&usage(0, 0, million, 0, 0)), Some(3_750_000));
        assert_eq!(prices.cost(&usage(0, 0, 0, million, 0)), Some(6_000_000));
        assert_eq!(prices.cost(&usage(0, 0, 0, 0, million)), Some(15_000_000), "reasoning is part of the output");
        assert_eq!(prices.cost(&usage(1_000, 10_000, 100, 50, 500)), Some(3_000 + 3_000 + 375 + 300 + 7_500));
    }

    #[test]
    fn small_amounts_are_rounded_and_large_ones_exact() {
        let prices = prices(json!({"input": 0.05, "output": 0.4}));
        assert_eq!((prices.cost(&Usage::new(9, 0)), prices.cost(&Usage::new(10, 0))), (Some(0), Some(1)));
        assert_eq!(prices.cost(&Usage::new(1 << 60, 0)), Some((1 << 60) / 20 + 1), "a float would be off by some");
    }

    #[test]
    fn what_has_no_price_makes_the_whole_unknown_if_it_was_used() {
        let prices = prices(json!({"input": 30, "output": 180}));
        assert_eq!(prices.cost(&usage(10, 0, 0, 0, 1)), Some(480));
        assert_eq!(prices.cost(&usage(10, 1, 0, 0, 1)), None);
    }

    #[test]
    fn a_long_prompt_costs_more_for_all_of_the_call_and_totals_are_not_long_prompts() {
        let prices = prices(
            json!({"input": 2, "cached": 0.2, "output": 10, "long": {"over": 1000, "price": {"input": 4, "output": 15}}}),
        );
        assert_eq!(prices.cost(&usage(1_000, 0, 0, 0, 10)), Some(2_100));
        assert_eq!(prices.cost(&usage(1_001, 0, 0, 0, 10)), Some(4_154));
        assert_eq!(prices.cost(&usage(1_000, 1, 0, 0, 10)), None, "the cache has no price for long prompts");
        let mut two = usage(1_000, 0, 0, 0, 10);
        two += two;
        assert_eq!(prices.cost(&two), Some(4_200));
    }

    #[test]
    fn prices_are_read_and_written_as_dollars() {
        let json = json!({"input": 0.003625, "cached": 0.0375, "output": 75.0});
        assert_eq!(serde_json::to_value(prices(json.clone())).expect("JSON"), json);
        for wrong in [json!({"input": -1, "output": 1}), json!({"input": "3", "output": 1}), json!({"output": 3})] {
            assert!(serde_json::from_value::<Prices>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
