//! Tools for models without tool calling: [`XmlTools`].

mod call;
mod code;
mod describe;
mod markup;
mod read;
mod render;
mod speak;

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
};

use agent_core::{
    AssistantMessage, ChunkSink, Error, FinishReason, Message, Model, ModelInfo, ModelRequest, ModelResponse, Part,
    Result, SystemMessage, ToolChoice, ToolSpec, ToolSpecs, async_trait,
    model::{Collector, ToolFinding},
    tool::WireKey,
};

use self::{call::CALLS, read::SEVERAL, speak::Speaker};

/// Adds tool calling to a model without it: the system prompt describes the tools, and the model
/// writes its calls as XML.
///
/// ```text
/// <tool_use>
/// <tool_name>weather</tool_name>
/// <parameter>
/// <city>Bern</city>
/// </parameter>
/// </tool_use>
/// ```
///
/// Parallel calls are written inside `<use_parallel_tool_calls>`, each as a `<parallel_tool>`. To
/// the rest of the system they are ordinary calls: they appear as such in the stream, and their
/// markup is hidden. Calls and results of earlier turns are rendered for the model in the same
/// format.
///
/// # Notes
///
/// * For a model with tool calling, this wrapper does nothing: its text is never parsed for calls.
///   To use XML regardless, declare that the model has no tool calling, as with
///   [`ModelBuilder::without_tools`](crate::ModelBuilder::without_tools).
/// * Calls are only parsed if the request offers tools, and never inside Markdown code.
/// * Malformed XML is parsed where it is unambiguous: elements without an end tag, parameters
///   without their enclosing elements, or as JSON. Ambiguous arguments become invalid JSON, so that
///   the model receives an error.
/// * Text after the calls is dropped, because it was written without their results. The closing
///   tags are also stop sequences of the request; see [`without_stop`](Self::without_stop).
/// * An answer format enforced by the provider ([`ModelParams::output`](agent_core::ModelParams))
///   excludes calls: such a request with tools is rejected.
///
/// # Example
///
/// ```
/// use agent_core::{History, Message, Model, ModelInfo, ModelRequest, ToolSpec};
/// use agent_core::testing::{ScriptedModel, Turn, detached_run};
/// use agent_llm::XmlTools;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let says = "Let me look.\n<tool_use><tool_name>weather</tool_name><city>Bern</city></tool_use>";
/// let model = ScriptedModel::new([Turn::text(says)]).with_info(ModelInfo::new("old").without_tools());
/// let model = XmlTools::new(model);
/// assert!(model.info().tools);
///
/// let run = detached_run(History::from_messages([Message::user("Do I need a hat?")])?);
/// let mut request = ModelRequest::new(run.cx().clone());
/// let city = json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// request.tools = [ToolSpec::new("weather", "Says what the weather is like.", city)].into_iter().collect();
/// let response = model.call(request).await?;
///
/// let call = response.message.calls().next().expect("a call");
/// assert_eq!((&*call.name, call.arguments.as_str()), ("weather", r#"{"city":"Bern"}"#));
/// assert_eq!(response.message.text(), "Let me look.");
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("calls");
/// ```
#[derive(Clone, Debug)]
pub struct XmlTools<M> {
    model: M,
    stop: bool,
}

impl<M: Model> XmlTools<M> {
    /// Adds tool calling to `model`.
    pub fn new(model: M) -> Self {
        Self { model, stop: true }
    }

    /// Disables the stop sequences after calls, for servers that reject stop sequences, or that
    /// many. Text after the calls is still dropped, but billed.
    #[must_use]
    pub fn without_stop(mut self) -> Self {
        self.stop = false;
        self
    }

    /// Returns a reference to the model.
    pub fn get_ref(&self) -> &M {
        &self.model
    }

    /// Returns a mutable reference to the model.
    pub fn get_mut(&mut self) -> &mut M {
        &mut self.model
    }

    /// Returns the model, consuming `self`.
    pub fn into_inner(self) -> M {
        self.model
    }

    /// Converts the request for the model: tools become text in the system prompt.
    fn as_text(&self, mut req: ModelRequest) -> Result<ModelRequest> {
        let tools = std::mem::take(&mut req.tools);
        if req.messages.iter().any(|message| message.as_tool().is_some()) {
            req.messages = render::history(&req.messages, &tools)?;
        }
        let params = Arc::make_mut(&mut req.params);
        let (choice, several) = (params.tool_choice.take(), params.parallel_tool_calls.take());
        if tools.is_empty() {
            return Ok(req);
        }
        if let Some(spec) = tools.iter().find(|spec| spec.is_server_side()) {
            return Err(Error::config(format!(
                "a model that takes no tools has none of its provider's own: leave out '{}', or offer a tool of yours",
                spec.name
            )));
        }
        if params.output.is_some() {
            return Err(Error::config(
                "the provider is to enforce a form of the answer, in which no tool could be called: offer no tools, or have \
                 the answer given by a tool or as the prompt says",
            ));
        }
        let several = several.unwrap_or(true);
        if self.stop {
            let ends = CALLS.into_iter().take(1).chain(several.then_some(SEVERAL)).map(|tag| format!("</{tag}>"));
            params.stop.extend(ends);
        }
        let described = tools.written(WireKey::new(&"xml-tools"), |specs| describe::tools(specs).into_bytes());
        let told = format!("{}{}", String::from_utf8_lossy(&described), describe::calling(choice.as_ref(), several));
        let system = req.system.get_or_insert_with(|| SystemMessage::new(Vec::new()));
        system.parts_mut().push(Part::text(told));
        Ok(req)
    }
}

#[async_trait]
impl<M: Model> Model for XmlTools<M> {
    /// Returns the model's info with tool calling enabled. Structured output is then best requested
    /// through a tool.
    fn info(&self) -> ModelInfo {
        let mut info = self.model.info();
        if !info.tools {
            (info.tools, info.json_schema) = (true, false);
        }
        info
    }

    /// Tools of a model without tool calling are text.
    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        if self.model.info().tools { self.model.check_tools(tools) } else { Vec::new() }
    }

    async fn warm_up(&self) -> Result<()> {
        self.model.warm_up().await
    }

    async fn close(&self) -> Result<()> {
        self.model.close().await
    }

    async fn call(&self, mut req: ModelRequest) -> Result<ModelResponse> {
        if self.model.info().tools {
            return self.model.call(req).await;
        }
        if req.params.tool_choice == Some(ToolChoice::None) {
            req.tools = ToolSpecs::default();
        }
        let tools = req.tools.clone();
        if tools.is_empty() {
            return self.model.call(self.as_text(req)?).await;
        }
        let calls = req.messages.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::calls).count();
        let speaker = Arc::new(Mutex::new(Speaker::new(tools, calls)));
        let lock = || speaker.lock().unwrap_or_else(PoisonError::into_inner);
        let sink = req.sink.clone();
        let mut inner = self.as_text(req)?;
        inner.sink = ChunkSink::default().with_observer({
            let speaker = speaker.clone();
            move |chunk| speaker.lock().unwrap_or_else(PoisonError::into_inner).take(chunk)
        });
        let mut collector = Collector::new(&sink);
        let mut call = self.model.call(inner);
        let answered = poll_fn(|cx| {
            let polled = call.as_mut().poll(cx);
            let ready = lock().ready();
            match ready.into_iter().try_for_each(|chunk| collector.push(chunk)) {
                Ok(()) => polled,
                Err(refused) => Err(refused).into(),
            }
        });
        let mut response = answered.await?;
        let cut = matches!(response.finish, FinishReason::Length | FinishReason::ContentFilter);
        let blocks = lock().finish(cut);
        let ready = lock().ready();
        ready.into_iter().try_for_each(|chunk| collector.push(chunk))?;
        if let Some(blocks) = blocks {
            *response.message.blocks_mut() = blocks;
            if !cut {
                response.finish = FinishReason::ToolCalls;
            }
        }
        response.message = collector.finish(response.message);
        Ok(response)
    }
}
