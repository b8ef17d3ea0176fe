//! Information-flow control for untrusted content (taint tracking).
//!
//! [`PromptInjection`] is the middleware. This module contains the labels of content and the sinks
//! through which data may leave, to classify your tools.
//!
//! ```
//! use agent_middleware::{PromptInjection, prompt_injection::{Label, Sink, SinkWhen}};
//!
//! let post = Sink::new("post").when(SinkWhen::Untrusted);
//! let injection = PromptInjection::builder().label("read_mail", Label::Untrusted).sink(post).build()?;
//! # drop(injection);
//! # Ok::<(), agent_core::Error>(())
//! ```

mod builder;
mod config;
pub(crate) mod context;
mod fence;
mod links;
mod quarantine;

use std::{fmt, sync::Arc};

use agent_core::{
    EventKind, Exit, Flow, Middleware, ModelNext, ModelRequest, ModelResponse, Part, Placement, Result, RunCx, RunEnd,
    SystemMessage, Tool, ToolBatch, ToolOutput, ToolRequest, Verdict,
};
use async_trait::async_trait;
use serde_json::json;

pub use self::{
    builder::PromptInjectionBuilder,
    config::{Label, Labels, Links, PromptInjectionConfig, Sink, SinkWhen},
};
use self::{
    context::Contexts,
    links::LinkFilter,
    quarantine::{Quarantine, READ_QUARANTINED, Read},
};
use crate::{
    approval,
    approval::Decision,
    permissions::{Policy, fits},
    scan::{self, Heard, Rewrite},
};

/// Prevents untrusted content from making an agent leak secrets.
///
/// A model cannot be prevented from believing what it reads. This middleware therefore tracks what
/// the model has read, and restricts tools accordingly: content has [`Label`]s according to its
/// source, a run's context has the labels of all its content, and a tool through which data can
/// leave (a [`Sink`]) is denied, or asked about, while the context has certain labels. By default
/// these are untrusted and secret content together.
///
/// * **Labels.** Tool outputs have the configured labels; the application's and the user's texts
///   are trusted. Labels are stored in the session's journal, survive a restart and a compaction,
///   and apply to later runs of the same conversation. A sub-agent that this middleware covers
///   inherits the labels of its caller, and passes its own labels back.
/// * **Sinks.** The calls of one message are judged as if all its other calls had been answered. A
///   person is asked with a question of the kind `egress`, whose payload is an
///   [`ApprovalRequest`](crate::approval::ApprovalRequest) and whose answer is a [`Decision`] to
///   approve or reject this call with these arguments.
/// * **Delimiters.** Untrusted outputs are enclosed in delimiters with an id that their author
///   cannot know, and the system prompt explains them. This helps models, but no guarantee depends
///   on it.
/// * **Quarantine.** A model with tools never receives the outputs of some tools. It receives a
///   handle, and the tool `read_quarantined`, with which a model without tools answers questions
///   about the text. The answers are untrusted, unless [a schema](PromptInjectionBuilder::extract)
///   excludes free text: only choices, numbers and booleans.
/// * **Links.** Once untrusted content is in the context, links and images that point to hosts that
///   are not allowed are removed from answers, also while they are streamed: showing an image
///   requests its URL.
///
/// # What it does not do
///
/// It does not search texts for attacks. Once something is labelled, unlabelled
/// content is trusted; [`other_tools`](PromptInjectionBuilder::other_tools) changes that. An allowed host is trusted
/// with everything that a link can encode. Sub-agents are covered if the middleware is registered
/// with `middleware_for_all`, or with them too; the output of an uncovered sub-agent has the label
/// of the tool that calls it.
///
/// # Order
///
/// ```text
/// // right: outputs are labelled and delimited before they are truncated or archived; the checked call runs
/// builder.middleware(LongToolOutput::new()).middleware(complete_paths).middleware(injection)
/// // wrong: LongToolOutput archives undelimited outputs, and the call that runs was not checked
/// builder.middleware(injection).middleware(complete_paths).middleware(LongToolOutput::new())
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{PromptInjection, prompt_injection::{Sink, SinkWhen}};
///
/// let injection = PromptInjection::builder()
///     .untrusted("fetch_page")
///     .untrusted("read_mail")
///     .secret("read_mail")
///     .sink(Sink::new("send_mail").ask())
///     .sink(Sink::new("run_code").when(SinkWhen::Untrusted))
///     .allow_host("docs.example.com")
///     .build()?;
/// # drop(injection);
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct PromptInjection {
    config: PromptInjectionConfig,
    links: Arc<LinkFilter>,
    quarantine: Option<Arc<Quarantine>>,
    tools: Vec<Arc<dyn Tool>>,
    contexts: Contexts,
    heard: Heard,
}

/// Kind of the question whether data may leave.
const EGRESS: &str = "egress";

impl PromptInjection {
    /// Creates the middleware with the [default labels](PromptInjectionConfig): tool outputs are
    /// untrusted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder, to set labels, sinks and the other options.
    pub fn builder() -> PromptInjectionBuilder {
        PromptInjectionBuilder::default()
    }

    /// Checks a configuration without a quarantine and builds the middleware.
    ///
    /// # Errors
    /// As [`PromptInjectionBuilder::build`].
    pub fn from_config(config: PromptInjectionConfig) -> Result<Self> {
        Self::builder().config(config).build()
    }

    /// Returns the labels of the content in the run's context, without `Trusted`.
    ///
    /// # Errors
    /// If the session's storage holds another value under the key.
    pub fn labels(&self, cx: &RunCx) -> Result<Labels> {
        self.contexts.labels(&self.config, cx)
    }

    fn removes_links(&self, cx: &RunCx) -> Result<bool> {
        Ok(self.config.links == Links::Remove && self.labels(cx)?.contains(&Label::Untrusted))
    }

    /// Returns the labels of an output; empty if it was quarantined.
    fn of_output(&self, req: &ToolRequest, out: &ToolOutput) -> Labels {
        let tool = &*req.call.name;
        if tool != READ_QUARANTINED || self.quarantine.is_none() {
            return self.config.of_tool(tool);
        }
        let Some((from, has_words)) = Read::of(out).map(Read::source) else { return Labels::new() };
        let mut labels = self.config.of_tool(&from);
        match has_words {
            true => labels.insert(Label::Untrusted),
            false => labels.remove(&Label::Untrusted),
        };
        labels
    }

    /// Returns the policy for a call and its reason: the strictest of the matching sinks.
    fn ruling(&self, req: &ToolRequest, labels: &Labels) -> Option<(Policy, &'static str)> {
        let sinks = self.config.sinks.iter().filter(|sink| fits(&sink.tool, &req.call.name, None));
        let applies = sinks.filter_map(|sink| Some((sink.policy, sink.applies(labels)?)));
        applies.max_by_key(|(policy, _)| *policy)
    }
}

impl Default for PromptInjection {
    fn default() -> Self {
        Self::builder().build().expect("the defaults are sound: a test builds them")
    }
}

#[async_trait]
impl Middleware for PromptInjection {
    fn name(&self) -> &str {
        "prompt_injection"
    }

    fn placement(&self) -> Placement {
        Placement::default().inside("long_tool_output")
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        context::begin(cx)
    }

    async fn before_model(&self, _: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let PromptInjectionConfig { tools, other_tools, fence, prompt, quarantine, .. } = &self.config;
        let untrusted = tools.values().flatten().chain(other_tools).any(|label| *label == Label::Untrusted);
        if *fence && !prompt.is_empty() && (untrusted || !quarantine.is_empty()) {
            let system = req.system.get_or_insert_with(|| SystemMessage::new(Vec::new()));
            system.parts_mut().push(Part::text(prompt.as_str()));
        }
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(&self, mut req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        if self.removes_links(&req.cx)? {
            self.heard.listen(&req);
            req.sink = req.sink.with_rewriter(scan::rewriter(self.links.clone()));
        }
        next.run(req).await
    }

    async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()> {
        if !self.heard.take(cx)
            && self.removes_links(cx)?
            && let Some(said) = scan::assistant(&*self.links, &res.message)?
        {
            res.message = said;
        }
        Ok(())
    }

    async fn before_tools(&self, cx: &RunCx, batch: &mut ToolBatch) -> Result<()> {
        if self.config.sinks.is_empty() {
            return Ok(());
        }
        let brought = batch.calls.iter().map(|call| {
            let call = &call.request.call;
            (call.id.clone(), self.config.of_tool(&call.name))
        });
        *context::lock(&self.contexts.brought.of(cx, Default::default)) = brought.collect();
        Ok(())
    }

    async fn before_tool(&self, cx: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        if self.config.sinks.is_empty() {
            return Ok(Flow::Continue);
        }
        let mut labels = self.labels(cx)?;
        if let Some(brought) = self.contexts.brought.get(cx) {
            let brought = context::lock(&brought);
            let others = brought.iter().filter(|(call_id, _)| *call_id != req.call.id);
            labels.extend(others.flat_map(|(_, labels)| labels));
        }
        let Some((policy, what)) = self.ruling(req, &labels) else { return Ok(Flow::Continue) };
        let tool = &req.call.name;
        let value = json!({"call_id": req.call.id, "tool": tool, "policy": policy, "in_context": what});
        cx.emit(EventKind::Custom { name: "prompt_injection".to_owned(), value });
        let why = format!("{what} is in the conversation");
        let refused = match policy {
            Policy::Ask => match approval::may_run(req, EGRESS, why)? {
                Ok(Decision::Approve { .. }) => return Ok(Flow::Continue),
                Ok(_) => format!("Tool execution for '{tool}' was rejected by the user."),
                Err(why) => format!("Tool execution for '{tool}' was not approved: {why}."),
            },
            _ => format!("Tool execution for '{tool}' is not allowed while {what} is in the conversation."),
        };
        Ok(Flow::Answer(ToolOutput::error(refused)))
    }

    async fn after_tool(&self, cx: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        if let Some(quarantine) = self.quarantine.as_ref().filter(|_| self.config.is_quarantined(&req.call.name)) {
            *out = quarantine.put_away(req, out).await?;
            return Ok(());
        }
        let labels = self.of_output(req, out);
        if self.config.fence && labels.contains(&Label::Untrusted) {
            fence::output(req, out);
        }
        context::add(cx, &labels)
    }

    async fn on_exit(&self, cx: &RunCx, exit: &mut Exit) -> Result<Verdict> {
        if self.removes_links(cx)? {
            let links: &dyn Rewrite = &*self.links;
            exit.answer = links.text(&exit.answer)?.into_owned();
        }
        Ok(Verdict::Proceed)
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        context::end(cx, &self.labels(cx)?, matches!(end, Ok(RunEnd::Finished(_))))?;
        self.contexts.end(cx);
        self.heard.take(cx);
        Ok(())
    }
}

impl fmt::Debug for PromptInjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptInjection")
            .field("config", &self.config)
            .field("contexts", &self.contexts)
            .field("heard", &self.heard)
            .finish_non_exhaustive()
    }
}
