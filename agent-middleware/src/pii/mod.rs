//! Detection and redaction of personal and secret data.
//!
//! [`Pii`] is the middleware. This module contains its rules and strategies, and [`Detector`], the
//! interface for custom detectors.
//!
//! ```
//! use agent_middleware::{Pii, pii::{PiiKind, PiiStrategy}};
//!
//! let pii = Pii::builder().rule(PiiKind::Email, PiiStrategy::Mask).build()?;
//! # drop(pii);
//! # Ok::<(), agent_core::Error>(())
//! ```

mod builder;
mod config;
mod detect;
mod redactor;
mod view;

use std::{fmt, sync::Arc};

use agent_core::{
    Error, ErrorKind, Flow, Middleware, ModelNext, ModelRequest, ModelResponse, PerRun, Placement, Result, RunCx,
    RunEnd, ToolOutput, ToolRequest,
};
use async_trait::async_trait;

pub use self::{
    builder::PiiBuilder,
    config::{PiiConfig, PiiKind, PiiPattern, PiiRule, PiiStrategy, Scope},
};
use self::{
    redactor::{Redactor, Rules},
    view::View,
};
use crate::scan::{self, Heard};
pub use crate::scan::{Detector, Passage};

/// Finds personal or secret data, and redacts, masks, hashes or blocks it: in messages to the
/// model, in model responses, in tool arguments and in tool outputs.
///
/// Without rules it uses the [default rules](PiiConfig).
///
/// | stage | redacted | effect of blocking |
/// |---|---|---|
/// | input | the view of each model call, but not the stored history | the call fails |
/// | output | the stream, the stored message, and the answer: the same text | the call fails |
/// | tool input | the arguments in the stream, in the history, and for the tool | the call is refused, and the model notified |
/// | tool output | text and value, for the model and in the history | the model receives a notice instead |
///
/// A blocked call fails with the kind [`ContentFiltered`](ErrorKind::ContentFiltered); its message
/// does not contain the finding.
///
/// # Streams
///
/// Streamed text is held back from the start of anything that may still become a finding, so no
/// part of a finding is released, however it is split into chunks, and the concatenated stream
/// equals the stored text. Prose is held back by a word, digits by their groups, a
/// [pattern](PiiPattern) by its [scope](Scope). The arguments of calls are held back until they are
/// complete.
///
/// # What it does not do
///
/// Images, documents, content that this framework does not interpret, and the system prompt are not
/// scanned. Obfuscated data, such as "jo at example dot com", is not found. The journal keeps the
/// original tool output next to the redacted one, and additional response data of the provider (its
/// log probabilities, for example).
///
/// # Order
///
/// A response passes the innermost middleware first, and so does a tool's output. Middleware that
/// stores or shows them belongs outside.
///
/// ```text
/// // right: logged and archived content is redacted
/// builder.middleware(Logging::new().content(200)).middleware(LongToolOutput::new()).middleware(pii)
/// // wrong: both see the original content
/// builder.middleware(pii).middleware(Logging::new().content(200)).middleware(LongToolOutput::new())
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{Pii, pii::{PiiKind, PiiPattern, PiiStrategy, Scope}};
///
/// let pii = Pii::builder()
///     .redact(PiiKind::Email)
///     .rule(PiiKind::CreditCard, PiiStrategy::Mask)
///     .rule(PiiKind::Secret, PiiStrategy::Block)
///     .redact(PiiKind::Pattern(PiiPattern::new("badge", r"B-\d{5}").within(Scope::Word)))
///     .build()?;
/// assert_eq!(pii.redact("Jo (jo@example.com, B-10234)")?, "Jo ([EMAIL], [BADGE])");
/// assert_eq!(pii.redact("4111 1111 1111 1111")?, "**** **** **** 1111");
/// assert!(pii.redact("sk-live-8sDk3kd9Xj20Smx1q").is_err());
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct Pii {
    config: PiiConfig,
    rules: Arc<Rules>,
    views: PerRun<View>,
    heard: Heard,
}

impl Pii {
    /// Creates the middleware with the [default rules](PiiConfig).
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder, to set the rules.
    pub fn builder() -> PiiBuilder {
        PiiBuilder::default()
    }

    /// Checks a configuration and builds the middleware.
    ///
    /// # Errors
    /// As [`PiiBuilder::build`].
    pub fn from_config(config: PiiConfig) -> Result<Self> {
        Self::builder().config(config).build()
    }

    /// Redacts a text outside of any run.
    ///
    /// # Errors
    /// [`ErrorKind::ContentFiltered`] if the text contains blocked data.
    pub fn redact(&self, text: &str) -> Result<String> {
        let redactor: &dyn scan::Rewrite = &self.redactor(true);
        redactor.text(text).map(Into::into)
    }

    fn of(config: PiiConfig, rules: Rules) -> Self {
        Self { config, rules: Arc::new(rules), views: PerRun::default(), heard: Heard::default() }
    }

    /// Returns a redactor of texts; blocked data is an error if `fails` is true, otherwise it is
    /// marked.
    fn redactor(&self, fails: bool) -> Redactor {
        Redactor { rules: self.rules.clone(), fails, words: true, arguments: None }
    }

    /// Returns the redactor of messages to a model.
    fn of_input(&self) -> Redactor {
        Redactor { arguments: Some(Arc::new(self.redactor(true))), ..self.redactor(true) }
    }

    /// Returns the redactor of model responses. A call with blocked arguments is refused when it is
    /// about to run.
    fn of_answers(&self) -> Redactor {
        let arguments = self.config.tool_input.then(|| Arc::new(self.redactor(false)));
        Redactor { words: self.config.output, arguments, ..self.redactor(true) }
    }

    fn looks_at_answers(&self) -> bool {
        !self.rules.scanner.is_empty() && (self.config.output || self.config.tool_input)
    }
}

impl Default for Pii {
    fn default() -> Self {
        Self::builder().build().expect("the default rules are sound: a test builds them")
    }
}

#[async_trait]
impl Middleware for Pii {
    fn name(&self) -> &str {
        "pii"
    }

    fn placement(&self) -> Placement {
        Placement::default().inside("logging").inside("long_tool_output")
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if self.config.input && !self.rules.scanner.is_empty() {
            req.messages = self.views.of(cx, View::default).of(&self.of_input(), &req.messages)?;
        }
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(&self, mut req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        if self.looks_at_answers() {
            self.heard.listen(&req);
            req.sink = req.sink.with_rewriter(scan::rewriter(Arc::new(self.of_answers())));
        }
        next.run(req).await
    }

    /// A response that a middleware returned without calling the model bypassed the sink.
    async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()> {
        let heard = self.heard.take(cx);
        if self.looks_at_answers() {
            let redactor = self.of_answers();
            if !heard && let Some(said) = scan::assistant(&redactor, &res.message)? {
                res.message = said;
            }
            for value in res.details.values_mut() {
                if let Some(changed) = scan::json(&self.redactor(false), value)? {
                    *value = changed;
                }
            }
        }
        Ok(())
    }

    async fn before_tool(&self, _: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        if !self.config.tool_input || self.rules.scanner.is_empty() {
            return Ok(Flow::Continue);
        }
        if let Some(changed) = scan::json(&self.redactor(false), &req.args)? {
            req.args = Arc::new(changed);
        }
        if let Some(name) = self.rules.marked(&req.args.to_string()) {
            let name = name.to_lowercase();
            let told = format!("Not run: the arguments hold what this tool must not be given ({name}).");
            return Ok(Flow::Answer(ToolOutput::error(told)));
        }
        Ok(Flow::Continue)
    }

    async fn after_tool(&self, _: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        if !self.config.tool_output || self.rules.scanner.is_empty() {
            return Ok(());
        }
        match scan::output(&self.redactor(true), out) {
            Ok(Some(changed)) => *out = changed,
            Ok(None) => {}
            Err(e) if e.kind() == ErrorKind::ContentFiltered => {
                *out = ToolOutput::error(withheld(&req.call.name, &e));
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    async fn after_agent(&self, cx: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        self.views.end(cx);
        self.heard.take(cx);
        Ok(())
    }
}

fn withheld(tool: &str, why: &Error) -> String {
    format!("The output of '{tool}' is not shown: {}.", why.message())
}

impl fmt::Debug for Pii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pii")
            .field("config", &self.config)
            .field("rules", &self.rules)
            .field("views", &self.views)
            .field("heard", &self.heard)
            .finish()
    }
}
