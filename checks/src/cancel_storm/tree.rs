//! Parts of the agent trees: models that stream, fail and call tools at random, tools that pause
//! and tools that hang.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use agent::{
    Model, ModelRequest, ModelResponse, Tool, ToolOutput, ToolRequest,
    core::{
        AssistantMessage, Block, Chunk, Error, ErrorKind, ModelInfo, Result, Retry, ToolSpec, async_trait,
        model::Collector,
    },
};
use serde_json::json;

/// Returns a pseudo-random number.
pub(crate) fn mix(n: u64) -> u64 {
    let z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Count of running model and tool calls.
#[derive(Default)]
pub(crate) struct Live(AtomicI64);

impl Live {
    pub(crate) fn count(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    fn enter(self: &Arc<Self>) -> Alive {
        self.0.fetch_add(1, Ordering::AcqRel);
        Alive(self.clone())
    }
}

struct Alive(Arc<Live>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Streams words, a few milliseconds apart, and then calls tools; one call in four fails midway.
pub(crate) struct TreeModel {
    seed: u64,
    calls: AtomicU64,
    live: Arc<Live>,
}

impl TreeModel {
    pub(crate) fn new(seed: u64, live: Arc<Live>) -> Self {
        Self { seed: mix(seed), calls: AtomicU64::new(0), live }
    }
}

#[async_trait]
impl Model for TreeModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("tree")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let _alive = self.live.enter();
        let call = self.calls.fetch_add(1, Ordering::AcqRel);
        let dice = mix(self.seed ^ call);
        let (text, mut collector) = ("a few words ".repeat(1 + (dice % 3) as usize), Collector::new(&req.sink));
        for word in text.split_inclusive(' ') {
            tokio::time::sleep(Duration::from_millis(2)).await;
            collector.push(Chunk::Text { index: 0, delta: word.to_owned() })?;
        }
        if (dice >> 8).is_multiple_of(4) {
            return Err(Error::new(ErrorKind::Truncated, "broke off").with_retry(Retry::Temporary(None)));
        }
        collector.push(Chunk::End { index: 0 })?;
        let mut blocks = vec![Block::text(text)];
        let mut calls = 0;
        for (bit, name, args) in [
            (1, "nap", json!({})),
            (2, "hang", json!({})),
            (4, "delegate", json!({"agent": "helper", "message": "go"})),
            (8, "nap", json!({})),
        ] {
            if (dice >> 16) & bit > 0 && req.tools.iter().any(|tool| tool.name == name) {
                blocks.push(Block::tool_call(format!("c{call}-{calls}"), name, args.to_string()));
                calls += 1;
            }
        }
        for (index, block) in (0..).zip(&blocks).skip(1) {
            collector.push(Chunk::Block { index, block: block.clone() })?;
            collector.push(Chunk::End { index })?;
        }
        Ok(ModelResponse::new(collector.finish(AssistantMessage::new(blocks))))
    }
}

fn anything(name: &str) -> ToolSpec {
    ToolSpec::new(name, "", json!({"type": "object", "properties": {}}))
}

/// Tool that takes five milliseconds.
pub(crate) struct Nap(pub(crate) Arc<Live>);

#[async_trait]
impl Tool for Nap {
    fn spec(&self) -> ToolSpec {
        anything("nap")
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        let _alive = self.0.enter();
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(ToolOutput::text("awake"))
    }
}

/// Tool that never returns.
pub(crate) struct Hang(pub(crate) Arc<Live>);

#[async_trait]
impl Tool for Hang {
    fn spec(&self) -> ToolSpec {
        anything("hang")
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        let _alive = self.0.enter();
        std::future::pending().await
    }
}
