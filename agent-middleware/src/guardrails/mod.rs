//! Guardrails: checks of input and output.
//!
//! [`Guardrails`] is the middleware, [`Moderation`] a guard with categories and scores,
//! [`ModelGuard`] one that calls a model. This module contains the interface for authors of a
//! [`Guard`]: subjects, stages and verdicts.
//!
//! ```
//! use agent_core::RunCx;
//! use agent_middleware::{Guardrails, guardrails::{GuardStage, GuardSubject, GuardVerdict, Guarded}};
//!
//! let secret = Guarded::new("secret", |_: RunCx, subject: GuardSubject| async move {
//!     Ok(match subject.text.contains("Project X") {
//!         true => GuardVerdict::Refuse("This is not talked about.".into()),
//!         false => GuardVerdict::Pass,
//!     })
//! });
//! let guardrails = Guardrails::new().guard(secret.at(GuardStage::Output));
//! # drop(guardrails);
//! ```

mod guard;
mod guarded;
mod input;
mod model_guard;
mod moderation;
mod output;

use std::sync::Arc;

use agent_core::{
    ChunkSink, Error, ErrorKind, EventKind, Exit, Flow, Middleware, ModelNext, ModelRequest, ModelResponse, Part,
    Placement, Result, Retry, RunCx, RunEnd, ToolOutput, ToolRequest, ToolResults, Verdict, model::Spoken,
};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

pub use self::{
    guard::{Guard, GuardStage, GuardSubject, GuardVerdict},
    guarded::{GuardConfig, Guarded, GuardrailsConfig, OnGuardError},
    model_guard::ModelGuard,
    moderation::{Moderation, ModerationConfig, Moderator, WordList},
};
use crate::{run_value::RunValue, scan::Heard};

/// The run's answer, if a guard of a tool finished it.
const ANSWER: RunValue<Option<String>> = RunValue::new("guardrails", "answer");

/// Checks user messages, model responses, tool arguments and tool outputs; each [`Guard`] runs at
/// its configured stages.
///
/// A guard passes, replaces or refuses its subject, finishes the run with an answer, or fails it
/// ([`GuardVerdict`]). The guards of one stage run in the order in which they were added, each on
/// the result of the earlier ones; the first one that does not let the subject pass decides. A
/// verdict is journalled: a resumed step does not check again.
///
/// * **Input.** The user messages that a model has not answered yet. A replacement is stored in the
///   history.
/// * **Output.** The text of a response. A blocking guard holds it back until the check is done, so
///   nothing is streamed before; a [parallel](Guarded::parallel) one lets it be streamed, and has
///   readers discard it if it does not pass. Reasoning is not checked.
/// * **Tools.** Arguments as JSON, and outputs as the model would receive them.
///
/// A guard that fails or times out lets nothing pass, unless it [fails open](Guarded::fail_open).
///
/// Each verdict except [`Pass`](GuardVerdict::Pass) is an event named `guardrails`, without the
/// text.
///
/// # Order
///
/// ```text
/// // right: guards see redacted content
/// builder.middleware(Guardrails::new().guard(tone)).middleware(pii)
/// // wrong: the guard's model receives content before its redaction
/// builder.middleware(pii).middleware(Guardrails::new().guard(tone))
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{Guardrails, guardrails::{GuardStage, GuardSubject, GuardVerdict, Guarded}};
/// use std::time::Duration;
///
/// let on_topic = Guarded::new("on_topic", |_cx, subject: GuardSubject| async move {
///     Ok(if subject.text.contains("weather") {
///         GuardVerdict::Pass
///     } else {
///         GuardVerdict::Refuse("I talk about the weather alone.".to_owned())
///     })
/// });
/// let guardrails = Guardrails::new()
///     .guard(on_topic.at(GuardStage::Input).parallel().timeout(Duration::from_secs(5)));
/// # drop(guardrails);
/// ```
#[derive(Debug, Default)]
pub struct Guardrails {
    config: GuardrailsConfig,
    guards: Vec<Guarded>,
    heard: Heard,
}

/// Reason why a subject was stopped.
enum Stopped {
    /// A tool call is answered with this text, or the run ends with it.
    Refused(String),
    /// The run ends with this text.
    Finished(String),
}

impl Guardrails {
    /// Creates guardrails without guards. An agent cannot be built with them before a guard is added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a guard.
    #[must_use]
    pub fn guard(mut self, mut guard: Guarded) -> Self {
        if let Some(config) = self.config.guards.get(&guard.name) {
            guard.config = config.clone();
        }
        self.guards.push(guard);
        self
    }

    fn at(&self, stage: GuardStage) -> impl Iterator<Item = &Guarded> {
        self.guards.iter().filter(move |guard| guard.config.checks(stage))
    }

    fn checks(&self, stage: GuardStage) -> bool {
        self.at(stage).next().is_some()
    }

    /// Runs guards on a text, one after another. `key` identifies the text in the journal.
    async fn ask<'a>(
        &self,
        cx: &RunCx,
        guards: impl Iterator<Item = &'a Guarded> + Send,
        key: &str,
        mut subject: GuardSubject,
    ) -> Result<Result<Option<String>, Stopped>> {
        let mut replaced = None;
        for guard in guards {
            let judge = async {
                let verdict = guard.judge(cx, &subject).await?;
                Ok(serde_json::to_value(verdict).expect("a verdict is JSON"))
            };
            let said = cx.decide(&format!("{key}/guardrails/{}", guard.name), judge).await?;
            let verdict = GuardVerdict::deserialize(said).map_err(|e| {
                Error::new(ErrorKind::NonDeterminism, format!("the decision of '{}' is no verdict: {e}", guard.name))
            })?;
            if verdict != GuardVerdict::Pass {
                let value = json!({"guard": guard.name, "stage": subject.stage, "tool": subject.tool, "verdict": word(&verdict)});
                cx.emit(EventKind::Custom { name: "guardrails".to_owned(), value });
            }
            match verdict {
                GuardVerdict::Pass => {}
                GuardVerdict::Replace(text) => {
                    subject.text.clone_from(&text);
                    replaced = Some(text);
                }
                GuardVerdict::Refuse(text) => return Ok(Err(Stopped::Refused(text))),
                GuardVerdict::Finish(text) => return Ok(Err(Stopped::Finished(text))),
                GuardVerdict::Fail(why) => {
                    let e = Error::new(ErrorKind::ContentFiltered, why).with_retry(Retry::Permanent);
                    return Err(e.with_context("guard", &guard.name));
                }
            }
        }
        Ok(Ok(replaced))
    }

    async fn ask_about_tool(
        &self,
        req: &ToolRequest,
        stage: GuardStage,
        text: String,
    ) -> Result<Result<Option<String>, ToolOutput>> {
        let cx = &req.cx;
        let key = format!("{}/{stage:?}", req.call.id);
        let subject = GuardSubject { stage, text, tool: Some(req.call.name.clone()) };
        Ok(match self.ask(cx, self.at(stage), &key, subject).await? {
            Ok(replaced) => Ok(replaced),
            Err(Stopped::Refused(text)) => Err(ToolOutput::error(text)),
            Err(Stopped::Finished(text)) => {
                ANSWER.update(cx, |answer| *answer = Some(text.clone()))?;
                Err(ToolOutput::error("Not run: the run was finished."))
            }
        })
    }
}

fn word(verdict: &GuardVerdict) -> &'static str {
    match verdict {
        GuardVerdict::Pass => "pass",
        GuardVerdict::Replace(_) => "replace",
        GuardVerdict::Refuse(_) => "refuse",
        GuardVerdict::Finish(_) => "finish",
        GuardVerdict::Fail(_) => "fail",
    }
}

impl From<GuardrailsConfig> for Guardrails {
    fn from(config: GuardrailsConfig) -> Self {
        Self { config, ..Self::default() }
    }
}

#[async_trait]
impl Middleware for Guardrails {
    fn name(&self) -> &str {
        "guardrails"
    }

    fn placement(&self) -> Placement {
        Placement::default().outside("pii")
    }

    fn validate(&self) -> Result<()> {
        if self.guards.is_empty() {
            return Err(Error::config("guardrails: no guards: nothing would be checked; add one"));
        }
        Ok(())
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let blocking = || self.at(GuardStage::Input).filter(|guard| !guard.config.parallel);
        if blocking().next().is_none() {
            return Ok(Flow::Continue);
        }
        match self.check_input(cx, blocking).await? {
            Ok(replaced) => {
                input::replace(cx, req, &replaced)?;
                Ok(Flow::Continue)
            }
            Err(stopped) => Ok(Flow::Answer(stopped.into_response())),
        }
    }

    async fn wrap_model_call(&self, mut req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        let (cx, sink) = (req.cx.clone(), req.sink.clone());
        let held = self.at(GuardStage::Output).any(|guard| !guard.config.parallel);
        if self.checks(GuardStage::Output) {
            self.heard.listen(&req);
        }
        let spoken = Spoken::default();
        if held {
            req.sink = ChunkSink::default();
        } else if !self.guards.is_empty() {
            req = spoken.listen(req);
        }
        let stopped = match self.beside_the_call(&cx, next.run(req)).await? {
            Ok(mut response) => {
                let changed = self.check_output(&cx, &mut response).await;
                if changed.as_ref().map_or(true, |changed| *changed) {
                    spoken.take_back(&sink)?;
                }
                if changed? || held {
                    response.message = sink.collect(response.message)?;
                }
                return Ok(response);
            }
            Err(stopped) => stopped,
        };
        spoken.take_back(&sink)?;
        let mut response = stopped?.into_response();
        response.message = sink.collect(response.message)?;
        Ok(response)
    }

    /// Checks responses that a middleware returned without calling the model: they bypassed the
    /// check around the call.
    async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()> {
        if !self.heard.take(cx) && self.checks(GuardStage::Output) && res.verdict != Verdict::Finish {
            self.check_output(cx, res).await?;
        }
        Ok(())
    }

    async fn before_tool(&self, _: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        if !self.checks(GuardStage::ToolInput) {
            return Ok(Flow::Continue);
        }
        match self.ask_about_tool(req, GuardStage::ToolInput, req.args.to_string()).await? {
            Ok(None) => {}
            Ok(Some(arguments)) => match serde_json::from_str(&arguments) {
                Ok(arguments) => req.args = Arc::new(arguments),
                Err(_) => {
                    let told = "Not run: a check replaced the arguments by something that is no JSON.";
                    return Ok(Flow::Answer(ToolOutput::error(told)));
                }
            },
            Err(refused) => return Ok(Flow::Answer(refused)),
        }
        Ok(Flow::Continue)
    }

    async fn after_tool(&self, _: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        if !self.checks(GuardStage::ToolOutput) {
            return Ok(());
        }
        match self.ask_about_tool(req, GuardStage::ToolOutput, out.to_text()).await? {
            Ok(None) => {}
            // The value for programs contains the replaced text, so it is dropped.
            Ok(Some(text)) if out.is_error() => *out = ToolOutput::error(text),
            Ok(Some(text)) => *out = ToolOutput::parts(vec![Part::text(text)]),
            Err(refused) => *out = refused,
        }
        Ok(())
    }

    async fn after_tools(&self, cx: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        let ends = self.checks_tools() && ANSWER.update(cx, |answer| answer.is_some())?;
        Ok(if ends { Verdict::Finish } else { Verdict::Proceed })
    }

    async fn on_exit(&self, cx: &RunCx, exit: &mut Exit) -> Result<Verdict> {
        if self.checks_tools()
            && let Some(answer) = ANSWER.update(cx, |answer| answer.clone())?
        {
            exit.answer = answer;
        }
        Ok(Verdict::Proceed)
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        ANSWER.end(cx, end);
        self.heard.take(cx);
        Ok(())
    }
}

impl Guardrails {
    fn checks_tools(&self) -> bool {
        self.checks(GuardStage::ToolInput) || self.checks(GuardStage::ToolOutput)
    }
}

impl Stopped {
    /// Returns the run's final response.
    fn into_response(self) -> ModelResponse {
        let (Self::Refused(text) | Self::Finished(text)) = self;
        let mut response = ModelResponse::new(&*text);
        response.verdict = Verdict::Finish;
        response
    }
}
