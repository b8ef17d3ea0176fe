//! The world outside a simulated run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use crate::{
    state::Question,
    tooling::{Effect, ToolOutput},
};

/// What was done outside, by idempotency key: it outlives the processes of a simulation. Clones are the same world.
#[derive(Clone, Debug, Default)]
pub struct Outside(Arc<Mutex<BTreeMap<String, Deed>>>);

/// Something that was done.
#[derive(Clone, Debug)]
struct Deed {
    effect: Effect,
    times: u32,
    output: ToolOutput,
}

impl Outside {
    /// Notes that something was done under `key`, and what came of it.
    pub fn happened(&self, key: &str, effect: Effect, output: &ToolOutput) {
        let mut deeds = self.lock();
        let deed = deeds.entry(key.to_owned()).or_insert_with(|| Deed { effect, times: 0, output: output.clone() });
        deed.times += 1;
    }

    /// What came of what was done under `key`; none if it was not done.
    pub fn output(&self, key: &str) -> Option<ToolOutput> {
        self.lock().get(key).map(|deed| deed.output.clone())
    }

    /// How many things were done.
    pub fn deeds(&self) -> usize {
        self.lock().len()
    }

    /// What was done more than once though its effect must not be.
    pub fn doubled(&self) -> Vec<String> {
        let deeds = self.lock();
        let must_not = |deed: &Deed| deed.times > 1 && matches!(deed.effect, Effect::Reconcilable | Effect::AtMostOnce);
        deeds.iter().filter(|(_, deed)| must_not(deed)).map(|(key, deed)| format!("{key} x {}", deed.times)).collect()
    }

    /// What a person would answer who looked here: to a question of kind [`Doubt::KIND`](crate::tool::Doubt::KIND).
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
