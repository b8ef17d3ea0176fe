//! Model with random costs and failures, and its actual usage.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent::{
    Model, ModelRequest, ModelResponse,
    core::{
        AssistantMessage, Block, Error, ErrorKind, ModelInfo, Result, Retry, Usage, async_trait,
        model::{ApproximateCounter, PriceTable},
    },
};
use serde_json::json;

/// Seeded random number generator.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }
}

/// Prices of 3 and 15 dollars per million input and output tokens.
pub(crate) struct Prices;

impl PriceTable for Prices {
    fn cost(&self, _: &str, usage: &Usage) -> Option<u64> {
        Some(usage.prompt() * 3 + usage.output * 15)
    }
}

/// Actual bill of the provider, which the budget does not see.
#[derive(Default)]
pub(crate) struct Truth(Mutex<Bill>);

#[derive(Default)]
struct Bill {
    calls: u64,
    all: u64,
    children: HashMap<Arc<str>, u64>,
}

impl Truth {
    fn add(&self, req: &ModelRequest, cost: u64) {
        let mut bill = self.bill();
        bill.calls += 1;
        bill.all += cost;
        if req.cx.ids().depth > 0 {
            *bill.children.entry(req.cx.ids().run_id.clone()).or_default() += cost;
        }
    }

    pub(crate) fn all(&self) -> u64 {
        self.bill().all
    }

    pub(crate) fn calls(&self) -> u64 {
        self.bill().calls
    }

    pub(crate) fn most_of_a_child(&self) -> u64 {
        self.bill().children.values().copied().max().unwrap_or(0)
    }

    fn bill(&self) -> MutexGuard<'_, Bill> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Responds with random texts and calls, at random costs; one call in six fails midway, after a
/// part of it was billed.
pub(crate) struct StormModel {
    name: &'static str,
    dice: Mutex<Dice>,
    truth: Arc<Truth>,
}

impl StormModel {
    pub(crate) fn new(name: &'static str, seed: u64, truth: Arc<Truth>) -> Self {
        Self { name, dice: Mutex::new(Dice::new(seed)), truth }
    }

    fn roll<const N: usize>(&self, ends: [u64; N]) -> [u64; N] {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        ends.map(|end| dice.below(end))
    }
}

#[async_trait]
impl Model for StormModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new(self.name)
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let longest = req.params.max_tokens.unwrap_or(8_192).min(8_192);
        let [length, fate, pause, call] = self.roll([longest, 6, 3_000, 3]);
        let usage = Usage::new(req.tokens(&ApproximateCounter), length + 1);
        // Half of the cost is billed when the call begins, and all of it unless the call is cut
        // off.
        let cost = Prices.cost(self.name, &usage).unwrap_or(0);
        self.truth.add(&req, cost / 2);
        tokio::time::sleep(Duration::from_micros(pause)).await;
        if fate == 0 {
            return Err(Error::new(ErrorKind::Truncated, "broke off").with_retry(Retry::Temporary(None)));
        }
        self.truth.add(&req, cost - cost / 2);
        let args = json!({"agent": "helper", "message": "go"}).to_string();
        let blocks = match (req.tools.is_empty(), call) {
            (false, 0 | 1) => vec![Block::tool_call("c", "delegate", args)],
            _ => vec![Block::text("done")],
        };
        Ok(ModelResponse::new(AssistantMessage::new(blocks)).with_usage(usage))
    }
}
