//! What the calls of one model cost.

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{ModelInfo, Usage};

use super::{Catalogue, Prices};

/// Most names under which a model is remembered to have answered. Few answer under more than one.
const MOST_NAMES: usize = 8;

/// What the calls of one model cost. The catalogue is searched once for each name under which the model answers, and not at
/// every call.
pub(crate) struct Pricing {
    catalogue: Catalogue,
    provider: String,
    name: String,
    asked: Option<Arc<Prices>>,
    answered: Mutex<Vec<(String, Option<Arc<Prices>>)>>,
}

impl Pricing {
    pub(crate) fn new(catalogue: Catalogue, info: &ModelInfo) -> Self {
        let asked = look_up(&catalogue, &info.provider, &info.name);
        Self { catalogue, provider: info.provider.clone(), name: info.name.clone(), asked, answered: Mutex::default() }
    }

    /// `usage` of one call with what it cost: by the model that answered, or else by the one that was asked.
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
        let prices = look_up(&self.catalogue, &self.provider, name);
        if known.len() == MOST_NAMES {
            known.remove(0);
        }
        known.push((name.to_owned(), prices.clone()));
        prices
    }
}

fn look_up(catalogue: &Catalogue, provider: &str, name: &str) -> Option<Arc<Prices>> {
    catalogue.find_at(provider, name)?.price.clone().map(Arc::new)
}
