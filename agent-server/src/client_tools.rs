//! Client-side tools: the model calls them, and the client returns the results.

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

/// Client-side tool. A call asks a question, so that the run is suspended in the journal until the
/// client answers.
struct ClientTool(ToolSpec);

/// Creates tools from these specifications.
///
/// # Errors
/// [`ErrorKind::InvalidRequest`] for a name that the agent already has, or that occurs twice.
pub(crate) fn tools(specs: impl IntoIterator<Item = ToolSpec>, taken: &[ToolSpec]) -> Result<ClientTools> {
    let mut tools = BTreeMap::new();
    for mut spec in specs {
        spec.parameters = open(spec.parameters);
        let name = spec.name.clone();
        if taken.iter().any(|own| own.name == name) || tools.contains_key(&name) {
            let message = format!("duplicate tool '{name}': rename the client's tool");
            return Err(Error::new(ErrorKind::InvalidRequest, message));
        }
        tools.insert(name, spec);
    }
    Ok(ClientTools(tools.into_values().collect()))
}

/// Client-side tools, as the client describes them.
#[derive(Clone, Debug)]
pub(crate) struct ClientTools(Vec<ToolSpec>);

/// Specifications of a request's client-side tools, for persistence.
#[derive(Clone, Debug)]
pub(crate) struct Specs(pub(crate) Vec<ToolSpec>);

/// State of the run, as the client sent it.
#[derive(Clone, Debug)]
pub(crate) struct ClientState(pub(crate) Value);

impl ClientTools {
    /// Adds these tools to the request, beside the agent's own.
    pub(crate) fn bring(self, request: RunRequest) -> RunRequest {
        if self.0.is_empty() {
            return request;
        }
        let tools = self.0.iter().map(|spec| Arc::new(ClientTool(spec.clone())) as Arc<dyn Tool>).collect();
        request.more_tools(tools).resource(Specs(self.0))
    }
}

/// Allows additional properties in a schema that does not mention properties, as JSON Schema
/// defines.
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

    /// The effects happen at the client, before the answer arrives.
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

/// Result of a call, from the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallResult {
    /// Id of the call, as the client knows it.
    pub(crate) call: String,
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// Converts results into answers to the open questions. Ignores results of calls that are not open:
/// clients send all results that they have.
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
