//! `offline:script`: a model that says what its file says.

use agent_core::{
    AssistantMessage, Block, Error, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, Usage, async_trait,
};
use serde_json::{Map, Value};

/// Name of the model.
pub(super) const SCRIPT: &str = "offline:script";

/// Option that holds the script.
const TURNS: &str = "turns";

/// A model that answers with the turns of its configuration, one after the other: for demonstrations and
/// tests without a key.
///
/// The number of its answers in the conversation selects the turn, so a conversation that resumes in
/// another process continues at the right one. After the last turn the first follows.
#[derive(Debug)]
pub(super) struct Script {
    turns: Vec<Turn>,
}

#[derive(Debug)]
struct Turn {
    text: Option<String>,
    /// Calls of tools, each with its arguments.
    calls: Vec<(String, Value)>,
}

impl Script {
    /// Reads the turns: each is a text, or a map of `text` and `calls`, a list of tools with their arguments.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for anything else.
    pub(super) fn new(options: &Map<String, Value>) -> Result<Self> {
        let wrong = |why: &str| Error::config(format!("model '{SCRIPT}': {why}"));
        if let Some(other) = options.keys().find(|key| *key != TURNS) {
            return Err(wrong(&format!("unknown option '{other}'; it has '{TURNS}'")));
        }
        let turns = options.get(TURNS).and_then(Value::as_array).filter(|turns| !turns.is_empty());
        let turns = turns.ok_or_else(|| wrong("its option 'turns' is a list of answers"))?;
        let turn = |turn: &Value| match turn {
            Value::String(text) => Some(Turn { text: Some(text.clone()), calls: Vec::new() }),
            Value::Object(fields) if fields.keys().all(|key| ["text", "calls"].contains(&key.as_str())) => {
                let calls = fields
                    .get("calls")
                    .map_or(Some(Vec::new()), |calls| calls.as_array()?.iter().map(call).collect())?;
                Some(Turn { text: fields.get("text").and_then(Value::as_str).map(str::to_owned), calls })
            }
            _ => None,
        };
        let turns: Option<Vec<_>> = turns.iter().map(turn).collect();
        let form = "an answer is a text, or a map of 'text' and 'calls', a list of tools with their arguments";
        Ok(Self { turns: turns.ok_or_else(|| wrong(form))? })
    }
}

/// A call: a map of the tool's name to its arguments.
fn call(call: &Value) -> Option<(String, Value)> {
    let (name, arguments) = call.as_object().filter(|call| call.len() == 1)?.iter().next()?;
    let arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments.clone() };
    arguments.is_object().then(|| (name.clone(), arguments))
}

#[async_trait]
impl Model for Script {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("script").with_provider("offline")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let said = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let turn = &self.turns[said % self.turns.len()];
        let text = turn.text.iter().map(Block::text);
        let calls = turn.calls.iter().enumerate().map(|(at, (name, arguments))| {
            Block::tool_call(format!("s{}-{}", said + 1, at + 1), name.as_str(), arguments.to_string())
        });
        let message = req.sink.collect(AssistantMessage::new(text.chain(calls).collect()))?;
        Ok(ModelResponse::new(message).with_usage(Usage::new(1, 1)))
    }
}
