//! One tool call.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    cx::{Ask, EngineCx, Hook, RunCx},
    error::{Error, ErrorKind, Result},
    event::EventKind,
    exact,
    journal::{ServedEnd, ServedRun},
    message::ToolCall,
    state::Answer,
    tooling::{Effect, ToolHints, ToolSpec, ToolSpecs},
};

/// One tool call. Cheap to clone, so that standard retry layers work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The run that makes the call.
    pub cx: RunCx,
    /// The call as the model made it.
    pub call: Arc<ToolCall>,
    /// The arguments: repaired and validated against the schema; injected arguments are filled in
    /// right before the tool runs. If a hook changes them, they are validated again.
    pub args: Arc<Value>,
    /// Number of the group of calls of one message that run concurrently.
    pub batch: u64,
    /// Effect class: the consequence of repeating the call.
    pub effect: Effect,
    /// Declared consequences of the call for the outside world.
    pub hints: ToolHints,
    /// See [`ToolOptions::delegates`](crate::ToolOptions::delegates).
    pub delegates: bool,
    /// True if an earlier process, or an attempt before a question was answered, began this call.
    pub resumed: bool,
    /// The tool's description for the model; unset outside an executor.
    pub tool: Option<Arc<ToolSpec>>,
    /// All tools that the run offers at this step, including those that a hook hid from the model;
    /// empty outside an executor.
    pub offered: ToolSpecs,
    /// The arguments that were validated against the schema.
    checked: Option<Arc<Value>>,
    /// The arguments before injected ones were filled in.
    bare: Option<Arc<Value>>,
}

impl ToolRequest {
    /// Creates a request for `call` with these arguments.
    pub fn new(cx: RunCx, call: impl Into<Arc<ToolCall>>, args: impl Into<Arc<Value>>) -> Self {
        Self {
            cx,
            call: call.into(),
            args: args.into(),
            batch: 0,
            effect: Effect::default(),
            hints: ToolHints::default(),
            delegates: false,
            resumed: false,
            tool: None,
            offered: ToolSpecs::default(),
            checked: None,
            bare: None,
        }
    }

    /// The request as a `wrap_tool_call` hook has it, `at` middlewares away from the tool.
    pub(crate) fn in_wrap(mut self, at: usize) -> Self {
        self.cx = self.cx.in_hook(Hook::WrapTool, at, Some(&self.call.id));
        self
    }

    /// True if the call may be destructive: its effect is not [`Effect::Pure`], and it is not
    /// declared non-destructive.
    pub fn is_risky(&self) -> bool {
        self.effect != Effect::Pure && self.hints.destructive != Some(false)
    }

    /// Fills in injected arguments: `complete` contains the present arguments and those from the
    /// agent and the state. Answers to questions of the call stay bound to the former only.
    pub fn fill_in(&mut self, complete: Arc<Value>) {
        if !Arc::ptr_eq(&complete, &self.args) {
            self.bare = Some(std::mem::replace(&mut self.args, complete));
        }
    }

    /// Marks the current arguments as validated against the tool's schema.
    pub fn set_checked(&mut self) {
        self.checked = Some(self.args.clone());
    }

    /// True if the current arguments were validated.
    pub fn is_checked(&self) -> bool {
        self.checked.as_ref().is_some_and(|checked| Arc::ptr_eq(checked, &self.args))
    }

    /// Deserialises the arguments. Numbers of more than 64 bits keep every digit: see
    /// [`exact`](crate::exact).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if they do not match `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        exact::from_value(&self.args).map_err(|e| {
            Error::new(ErrorKind::InvalidArguments, format!("Invalid arguments for tool '{}': {e}", self.call.name))
        })
    }

    /// Idempotency key of the call, stable across attempts and processes. A call of another step
    /// has another key, even if the model gave it the same id.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}/{}", self.cx.ids().run_id, self.cx.step(), self.call.id)
    }

    /// Emits an [`EventKind::ToolProgress`] event, which reports the tool's progress or a part of
    /// its result. It is delivered at once and not persisted, and the model does not see it.
    ///
    /// ```
    /// use agent_core::{Result, ToolOutput, ToolRequest};
    ///
    /// async fn count(req: ToolRequest) -> Result<ToolOutput> {
    ///     for file in ["a.txt", "b.txt"] {
    ///         req.progress(format!("counting {file}"));
    ///     }
    ///     Ok(ToolOutput::text("2 files"))
    /// }
    /// ```
    pub fn progress(&self, progress: impl Into<Value>) {
        self.cx.emit(EventKind::ToolProgress { call_id: self.call.id.clone(), progress: progress.into() });
    }

    /// Makes a decision within this call once, even if the call is resumed: see [`RunCx::decide`].
    ///
    /// # Errors
    /// Those of [`RunCx::decide`].
    pub async fn decide(&self, name: &str, decide: impl Future<Output = Result<Value>> + Send) -> Result<Value> {
        let name = match self.cx.1.call() {
            Some(_) => self.cx.1.name(name),
            None => format!("{}/{name}", self.call.id),
        };
        self.cx.decide_as(&name, decide).await
    }

    /// Verifies that this process still owns the session (a fencing check). The run verifies it
    /// before it calls the tool; a tool that works for long before an effect that must not happen
    /// twice verifies it again right before the effect: the process may have been paused, and
    /// another process may have taken the session over.
    ///
    /// Costs nothing while the session's lease cannot have expired; otherwise it queries the store.
    ///
    /// ```
    /// # use agent_core::{Result, ToolOutput, ToolRequest};
    /// # async fn prepare(_: &ToolRequest) -> Result<String> { Ok("an order".into()) }
    /// # async fn pay(_: String, _key: String) -> Result<()> { Ok(()) }
    /// async fn call(req: ToolRequest) -> Result<ToolOutput> {
    ///     let order = prepare(&req).await?; // this takes a while
    ///     req.verify_lease().await?; // right before the effect; earlier it would prove nothing
    ///     pay(order, req.idempotency_key()).await?;
    ///     Ok(ToolOutput::text("paid"))
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if another process owns the session or the
    /// owner cannot be determined. Return the error: the run appends no more and ends with it.
    pub async fn verify_lease(&self) -> Result<()> {
        self.cx.0.log.verify_lease().await
    }

    /// Starts a run of a remote agent and waits for its end, however long it takes: the agent may
    /// run in another process or on another machine. When this run is driven again, it waits for
    /// the same remote run; when this call is cancelled, so is the remote run. After its end its
    /// usage is charged to this run's budgets, for every kind of end; the usage of an abandoned run
    /// is unknown.
    ///
    /// Only for a tool that [delegates](crate::ToolOptions::delegates), under an engine that
    /// supports remote runs.
    ///
    /// # Errors
    /// Those of [`Durable::served`](crate::engine::Durable::served).
    pub async fn served(&self, run: &ServedRun) -> Result<ServedEnd> {
        if !self.delegates {
            // Otherwise the call would be persisted as one step, within which the engine can
            // neither wait nor release the process.
            return Err(Error::config(format!(
                "tool '{}' has agents called that are served elsewhere: its options must say that it delegates, and no other tool may call it",
                self.call.name
            )));
        }
        let end = self.cx.0.log.served_step(run).await?;
        EngineCx(&self.cx).count_uncounted();
        Ok(end)
    }

    /// Returns the answer to a question about this call, or suspends the run until there is one.
    ///
    /// The question is recorded in the run, so a layer that converts the error cannot drop it. The
    /// answer is valid only for this call with these arguments and this payload; if they have
    /// changed when the run resumes, the question is asked again.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] while there is no answer; [`ErrorKind::InvalidRequest`] if the
    /// answer does not have the form of `T`.
    pub fn ask<T: DeserializeOwned>(&self, kind: &str, payload: Value) -> Result<T> {
        self.ask_with(Ask::new(kind, payload))?.parse()
    }

    /// Like [`ask`](Self::ask), for a question that can be asked several times with different
    /// answers: `nonce` distinguishes the instances.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub fn ask_once<T: DeserializeOwned>(&self, kind: &str, nonce: &str, payload: Value) -> Result<T> {
        self.ask_with(Ask::new(kind, payload).nonce(nonce))?.parse()
    }

    /// Like [`ask`](Self::ask), for a question with a schema, an expiry or an actor.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] while there is no answer; [`ErrorKind::Timeout`] if the question
    /// has expired and has no default.
    pub fn ask_with(&self, ask: Ask) -> Result<Answer> {
        let args = self.bare.as_ref().unwrap_or(&self.args);
        self.cx.ask_at(&self.call.id, self.cx.step(), &json!([self.call.name, args]), ask)
    }
}
