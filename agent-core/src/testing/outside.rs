//! Record of external effects in a simulation.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use crate::{
    state::Question,
    tooling::{Effect, ToolOutput},
};

/// Record of external effects by idempotency key. It outlives the processes of a simulation. All
/// clones share the same data.
#[derive(Clone, Debug, Default)]
pub struct Outside(Arc<Mutex<BTreeMap<String, Deed>>>);

/// A recorded effect.
#[derive(Clone, Debug)]
struct Deed {
    effect: Effect,
    times: u32,
    output: ToolOutput,
}

impl Outside {
    /// Records an effect under `key` with its output.
    pub fn happened(&self, key: &str, effect: Effect, output: &ToolOutput) {
        let mut deeds = self.lock();
        let deed = deeds.entry(key.to_owned()).or_insert_with(|| Deed { effect, times: 0, output: output.clone() });
        deed.times += 1;
    }

    /// Returns the output of the effect under `key`; `None` if it did not happen.
    pub fn output(&self, key: &str) -> Option<ToolOutput> {
        self.lock().get(key).map(|deed| deed.output.clone())
    }

    /// Number of distinct effects.
    pub fn deeds(&self) -> usize {
        self.lock().len()
    }

    /// The effects that happened more than once although their class forbids it.
    pub fn doubled(&self) -> Vec<String> {
        let deeds = self.lock();
        let must_not = |deed: &Deed| deed.times > 1 && matches!(deed.effect, Effect::Reconcilable | Effect::AtMostOnce);
        deeds.iter().filter(|(_, deed)| must_not(deed)).map(|(key, deed)| format!("{key} x {}", deed.times)).collect()
    }

    /// Returns the answer of a person who checks the record, to a question of kind
    /// [`Doubt::KIND`](crate::tool::Doubt::KIND).
    pub fn look(&self, question: &Question) -> Value {
        match question.payload["idempotency_key"].as_str().and_then(|key| self.output(key)) {
            Some(output) => {
                let value = output.as_value().cloned().unwrap_or_else(|| output.to_text().into());
                json!({ "happened": value })
            }
            None => json!("did_not"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Deed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
