//! Tools that a client brings: the model calls them, and the client answers.

use std::{collections::BTreeMap, sync::Arc};

use agent::{
    Checkpoint, Effect, Error, ErrorKind, Question, Result, RunRequest, Tool, ToolOptions, ToolOutput, ToolRequest,
    async_trait,
    message::Part,
    run::{Answer, Ask},
    tool::ToolSpec,
};
use serde_json::{Value, json};

use crate::speech::{CLIENT_TOOL, own_id};

/// A tool that a client brings. A call of it asks, so the run waits, in the journal, until the client has answered.
struct ClientTool(ToolSpec);

/// The tools of these specifications.
///
/// # Errors
/// [`ErrorKind::InvalidRequest`] for a name that the agent has already, or that comes twice.
pub(crate) fn tools(specs: impl IntoIterator<Item = ToolSpec>, taken: &[ToolSpec]) -> Result<ClientTools> {
    let mut tools = BTreeMap::new();
    for mut spec in specs {
        spec.parameters = open(spec.parameters);
        let name = spec.name.clone();
        if taken.iter().any(|own| own.name == name) || tools.contains_key(&name) {
            let message = format!("there is a tool '{name}' already: give yours another name");
            return Err(Error::new(ErrorKind::InvalidRequest, message));
        }
        tools.insert(name, spec);
    }
    Ok(ClientTools(tools.into_values().collect()))
}

/// Tools that a client brings, as it describes them.
#[derive(Clone, Debug)]
pub(crate) struct ClientTools(Vec<ToolSpec>);

/// The tools that a request brings, for whoever keeps what it brought.
#[derive(Clone, Debug)]
pub(crate) struct Specs(pub(crate) Vec<ToolSpec>);

/// What a client says that the run's state is.
#[derive(Clone, Debug)]
pub(crate) struct ClientState(pub(crate) Value);

impl ClientTools {
    /// The request with these tools beside the agent's own.
    pub(crate) fn bring(self, request: RunRequest) -> RunRequest {
        if self.0.is_empty() {
            return request;
        }
        let tools = self.0.iter().map(|spec| Arc::new(ClientTool(spec.clone())) as Arc<dyn Tool>).collect();
        request.more_tools(tools).resource(Specs(self.0))
    }
}

/// A schema that says nothing of properties takes any, as JSON Schema has it.
fn open(mut parameters: Value) -> Value {
    if parameters.is_null() {
        parameters = json!({"type": "object"});
    }
    let is_silent = |name| parameters.get(name).is_none();
    if parameters["type"] == "object" && is_silent("properties") && is_silent("additionalProperties") {
        parameters["additionalProperties"] = true.into();
    }
    parameters
}

#[async_trait]
impl Tool for ClientTool {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    /// What it does, it does at the client, before the answer comes.
    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let payload = json!({"tool": req.call.name, "arguments": *req.args});
        let schema = json!({"type": "object", "required": ["result"]});
        let answer: Value = req.ask_with(Ask::new(CLIENT_TOOL, payload).schema(schema))?.value;
        let output = ToolOutput::parts(vec![Part::text(text(&answer["result"]))]);
        Ok(if answer["is_error"] == true { output.failed() } else { output })
    }
}

fn text(result: &Value) -> String {
    result.as_str().map_or_else(|| result.to_string(), str::to_owned)
}

/// What a client says came of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallResult {
    /// The call, as the client knows it.
    pub(crate) call: String,
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// The answers that these results are, to what the run waits for. Results of calls that nobody waits for are passed over: a client
/// sends all that it has.
pub(crate) fn answers(open: &Checkpoint, results: &[CallResult]) -> Vec<(String, Answer)> {
    let waiting = open.questions.iter().filter(|question| question.kind == CLIENT_TOOL);
    let result = |question: &Question| {
        let call = question.id.split('/').next()?;
        results.iter().rfind(|result| result.call == call || own_id(&result.call) == call)
    };
    let answer = |question: &Question| {
        let CallResult { text, is_error, .. } = result(question)?;
        Some(question.answer(json!({"result": text, "is_error": is_error})))
    };
    waiting.filter_map(answer).collect()
}
