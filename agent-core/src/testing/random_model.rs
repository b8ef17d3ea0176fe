//! A model with random tool calls.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::SeededRng;
use crate::{
    error::Result,
    llm::{ChunkSink, ModelInfo, ModelResponse},
    message::{AssistantMessage, Block, Message},
    model::{Model, ModelRequest},
    tooling::ToolSpec,
    usage::Usage,
};

/// A model that calls the offered tools, with numbers of calls and arguments drawn from a seed, and
/// then finishes with "done".
///
/// Its answers depend only on the seed and the conversation, so that they are the same in every
/// process. Arguments follow the tools' schemas, as far as these use types, `enum` and
/// `properties`.
///
/// ```
/// use agent_core::{History, Model, ModelRequest, testing::{RandomModel, SeededRng, detached_run}};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = RandomModel::new(SeededRng::new(5));
/// let run = detached_run(History::default());
/// let answer = model.call(ModelRequest::new(run.cx().clone())).await?;
/// assert_eq!(answer.message.text(), "done", "there are no tools to call");
/// # Ok::<(), agent_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RandomModel {
    rng: SeededRng,
    steps: u64,
    calls: u64,
}

impl RandomModel {
    /// Creates a model with up to 6 steps and up to 4 calls in each.
    pub fn new(rng: SeededRng) -> Self {
        Self { rng, steps: 6, calls: 4 }
    }

    /// Sets the maximum number of steps with calls.
    #[must_use]
    pub fn steps(mut self, most: u64) -> Self {
        self.steps = most;
        self
    }

    /// Sets the maximum number of calls per message.
    #[must_use]
    pub fn calls(mut self, most: u64) -> Self {
        self.calls = most;
        self
    }

    fn answer(&self, req: &ModelRequest) -> AssistantMessage {
        let told = req.messages.iter().find(|m| matches!(m, Message::User(_))).map(Message::text).unwrap_or_default();
        let rng = self.rng.part(&req.cx.ids().path).part(&told);
        let step = req.messages.iter().filter(|m| matches!(m, Message::Assistant(_))).count() as u64;
        let tools: Vec<_> = req.tools.iter().collect();
        if tools.is_empty() || step >= rng.part("steps").below(self.steps + 1) {
            return "done".into();
        }
        let mut rng = rng.part(&format!("step {step}"));
        let calls = 1 + rng.below(self.calls);
        let mut blocks = if rng.chance(30) { vec![Block::text(format!("step {step}"))] } else { Vec::new() };
        for n in 0..calls {
            let at = usize::try_from(rng.below(tools.len() as u64)).unwrap_or(0);
            // Some models reuse ids.
            let id = if rng.chance(5) { "again".to_owned() } else { format!("{step}-{n}") };
            let name = if rng.chance(3) { "ghost" } else { tools[at].name.as_str() };
            blocks.push(Block::tool_call(id, name, arguments(tools[at], &mut rng).to_string()));
        }
        AssistantMessage::new(blocks)
    }
}

#[async_trait]
impl Model for RandomModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("random")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let message = self.answer(&req);
        let used = Usage::new(10 + req.messages.len() as u64, message.blocks().len() as u64);
        let sink: &ChunkSink = &req.sink;
        Ok(ModelResponse::new(sink.collect(message)?).with_usage(used))
    }
}

fn arguments(tool: &ToolSpec, rng: &mut SeededRng) -> Value {
    let properties = tool.parameters["properties"].as_object();
    let values = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), value(schema, rng)));
    Value::Object(values.collect::<Map<_, _>>())
}

fn value(schema: &Value, rng: &mut SeededRng) -> Value {
    if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.is_empty()) {
        let at = usize::try_from(rng.below(choices.len() as u64)).unwrap_or(0);
        return choices[at].clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(rng.below(10)),
        Some("boolean") => json!(rng.chance(50)),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => json!(format!("text {}", rng.below(100))),
    }
}
