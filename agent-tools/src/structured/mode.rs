//! Methods to request structured output.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{
    Block, Chunk, ChunkSink, Error, FinishReason, ModelInfo, ModelRequest, ModelResponse, Part, Result, SystemMessage,
    ToolChoice, ToolSpec, model::Effort,
};
use serde::{Deserialize, Serialize};

use super::{form::Form, limits::fits};

/// Tool whose arguments are the answer.
pub(super) const ANSWER: &str = "final_answer";

/// Method by which a model is made to answer in a format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerMode {
    /// [`Native`](Self::Native) if the model is known to [enforce a JSON
    /// Schema](ModelInfo::json_schema), and providers accept the schema: objects with fixed fields,
    /// no tuples, no recursion, no more properties, choices and levels than the model's provider
    /// compiles. Otherwise [`Tool`](Self::Tool), or [`Prompt`](Self::Prompt) if the
    /// model takes no tools.
    #[default]
    Auto,
    /// The provider enforces the schema.
    Native,
    /// The model must call a tool, `final_answer`, whose arguments are the answer. The tool is
    /// never run.
    Tool,
    /// The schema is part of the system prompt.
    Prompt,
}

impl AnswerMode {
    /// Returns the method for a model; `enforces` is false if its provider refused the schema.
    pub(super) fn choose(self, info: Option<&ModelInfo>, form: &Form, enforces: bool) -> Self {
        match (self, info) {
            (Self::Auto, Some(info))
                if info.json_schema && form.is_plain && enforces && fits(&form.format.schema, &info.provider) =>
            {
                Self::Native
            }
            (Self::Auto, Some(info)) if !info.tools => Self::Prompt,
            (Self::Auto, _) => Self::Tool,
            (chosen, _) => chosen,
        }
    }

    /// Adds the format to the request.
    pub(super) fn ask(self, form: &Form, req: &mut ModelRequest) -> Result<()> {
        match self {
            Self::Native => Arc::make_mut(&mut req.params).output = Some(Arc::new(form.format.clone())),
            Self::Prompt => instruct(req, prompt(form, !req.tools.is_empty())),
            _ => offer_tool(form, req)?,
        }
        Ok(())
    }

    /// Returns the message that asks the model to correct a rejected answer.
    pub(super) fn correction(self, problems: &str) -> String {
        let how = match self {
            Self::Tool => format!("Call `{ANSWER}` again with the whole, corrected answer."),
            _ => "Answer again with the whole, corrected JSON and nothing else.".to_owned(),
        };
        format!("Your answer does not have the form that it must have: {problems}. {how}")
    }
}

fn instruct(req: &mut ModelRequest, text: String) {
    let system = req.system.get_or_insert_with(|| SystemMessage::new(Vec::new()));
    system.parts_mut().push(Part::text(text));
}

fn prompt(form: &Form, has_tools: bool) -> String {
    let when = if has_tools { "When you need no more tools, answer" } else { "Answer" };
    let schema = &form.format.schema;
    format!("{when} with one JSON object of this JSON Schema and nothing else, without a code fence:\n{schema}")
}

fn offer_tool(form: &Form, req: &mut ModelRequest) -> Result<()> {
    if req.tools.iter().any(|tool| tool.name == ANSWER) {
        return Err(Error::config(format!(
            "the agent has a tool '{ANSWER}', as structured output names its own: rename it, or choose another mode"
        )));
    }
    let others = !req.tools.is_empty() && req.params.tool_choice != Some(ToolChoice::None);
    // Providers reject a forced tool call of a model that is set to reason first.
    let thinks = req.params.effort.is_some_and(|effort| effort != Effort::None);
    let format = &form.format;
    let mut description =
        format!("Gives the final answer. Call it once, alone, and when you are done: {}", format.name);
    description.extend(format.description.iter().flat_map(|text| [": ", text]));
    let tool = ToolSpec::new(ANSWER, description, format.schema.clone());
    let kept = if others { &req.tools[..] } else { &[] };
    req.tools = kept.iter().cloned().chain([tool]).collect();
    if thinks {
        instruct(req, format!("Give your final answer by calling `{ANSWER}`."));
    }
    let params = Arc::make_mut(&mut req.params);
    match &params.tool_choice {
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => {}
        _ if thinks => params.tool_choice = None,
        _ if others => params.tool_choice = Some(ToolChoice::Required),
        _ => params.tool_choice = Some(ToolChoice::Tool(ANSWER.to_owned())),
    }
    if !req.sink.is_idle() {
        req.sink = as_text(&req.sink);
    }
    Ok(())
}

/// Converts calls of the answer tool to text, in the stream and hence in the message.
fn as_text(sink: &ChunkSink) -> ChunkSink {
    let answers = Mutex::new(BTreeSet::new());
    sink.with(move |chunk| {
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(match chunk {
            Chunk::ToolCall { index, name, .. } if *name == *ANSWER => {
                answers.insert(index);
                return Ok(None);
            }
            Chunk::Arguments { index, delta } if answers.contains(&index) => Chunk::Text { index, delta },
            Chunk::Block { index, block } => Chunk::Block { index, block: said(block) },
            Chunk::Restart => {
                answers.clear();
                Chunk::Restart
            }
            other => other,
        }))
    })
}

/// Converts a call of the answer tool to its text.
fn said(block: Block) -> Block {
    match block {
        Block::ToolCall(call) if *call.name == *ANSWER => Block::text(call.arguments),
        other => other,
    }
}

/// Returns the response with the answer as its text.
pub(super) fn settled(mut response: ModelResponse) -> ModelResponse {
    if response.message.calls().any(|call| *call.name == *ANSWER) {
        for block in response.message.blocks_mut() {
            *block = said(std::mem::replace(block, Block::text("")));
        }
    }
    if response.finish == FinishReason::ToolCalls && !response.message.has_calls() {
        response.finish = FinishReason::Stop;
    }
    response
}
