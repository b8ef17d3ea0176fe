//! Prices of one model's calls.

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{ModelInfo, Usage};

use super::{Catalogue, Prices};

/// Maximum number of remembered names under which a model answered. Few models use more than one.
const MOST_NAMES: usize = 8;

/// Lookup of a model's prices at a provider.
type LookUp = fn(&Catalogue, &str, &str) -> Option<Prices>;

/// Prices of one model's calls. The catalogue is searched once for each name under which the model
/// answers, not at every call.
pub(crate) struct Pricing {
    catalogue: Catalogue,
    provider: String,
    name: String,
    look_up: LookUp,
    asked: Option<Arc<Prices>>,
    answered: Mutex<Vec<(String, Option<Arc<Prices>>)>>,
}

impl Pricing {
    pub(crate) fn new(catalogue: Catalogue, info: &ModelInfo) -> Self {
        Self::by(Catalogue::prices, catalogue, info.provider.clone(), info.name.clone())
    }

    /// Returns the prices of the same calls in a batch.
    pub(crate) fn of_batches(&self) -> Self {
        Self::by(Catalogue::batch_prices, self.catalogue.clone(), self.provider.clone(), self.name.clone())
    }

    fn by(look_up: LookUp, catalogue: Catalogue, provider: String, name: String) -> Self {
        let asked = look_up(&catalogue, &provider, &name).map(Arc::new);
        Self { catalogue, provider, name, look_up, asked, answered: Mutex::default() }
    }

    /// Adds the cost to the `usage` of one call: by the model that answered, or else by the one
    /// that was requested.
    pub(crate) fn price(&self, usage: Usage, answered: Option<&str>) -> Usage {
        let answered = answered.filter(|name| *name != self.name).and_then(|name| self.of(name));
        let cost = |prices: &Option<Arc<Prices>>| prices.as_ref()?.cost(&usage);
        usage.with_cost(cost(&answered).or_else(|| cost(&self.asked)))
    }

    fn of(&self, name: &str) -> Option<Arc<Prices>> {
        let mut known = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, prices)) = known.iter().find(|(known, _)| known == name) {
            return prices.clone();
        }
        let prices = (self.look_up)(&self.catalogue, &self.provider, name).map(Arc::new);
        if known.len() == MOST_NAMES {
            known.remove(0);
        }
        known.push((name.to_owned(), prices.clone()));
        prices
    }
}
