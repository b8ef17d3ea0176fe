//! One tool call.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    cx::{Ask, EngineCx, RunCx},
    error::{Error, ErrorKind, Result},
    event::EventKind,
    journal::{ServedEnd, ServedRun},
    message::ToolCall,
    state::{Answer, Checkpoint},
    tooling::{Effect, ToolHints, ToolSpec, ToolSpecs},
};

/// One tool call. Cheap to clone, so that stock retry layers apply.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The run.
    pub cx: RunCx,
    /// The call as the model made it.
    pub call: Arc<ToolCall>,
    /// The arguments: repaired, checked against the schema, with injected ones filled in right before the tool runs.
    /// A hook that changes them has them checked again.
    pub args: Arc<Value>,
    /// Names the calls of one message that run together.
    pub batch: u64,
    /// Where a sub-agent stood when this call is gone on with.
    pub child: Option<Arc<Checkpoint>>,
    /// What repeating the call would do.
    pub effect: Effect,
    /// What the call may do to the world, as far as the tool says.
    pub hints: ToolHints,
    /// As [`ToolOptions::delegates`](crate::ToolOptions::delegates).
    pub delegates: bool,
    /// True if an earlier process, or an earlier attempt to answer a question, began this call.
    pub resumed: bool,
    /// The tool, as the model was told of it; unset outside an executor.
    pub tool: Option<Arc<ToolSpec>>,
    /// All tools that the run offers at this step, whichever of them a hook showed to the model; empty outside an executor.
    pub offered: ToolSpecs,
    /// The arguments that were checked against the schema.
    checked: Option<Arc<Value>>,
    /// The arguments before others were filled in.
    bare: Option<Arc<Value>>,
}

impl ToolRequest {
    /// A request for `call` with these arguments.
    pub fn new(cx: RunCx, call: impl Into<Arc<ToolCall>>, args: impl Into<Arc<Value>>) -> Self {
        Self {
            cx,
            call: call.into(),
            args: args.into(),
            batch: 0,
            child: None,
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

    /// True if the call may destroy something, or nobody says that it does not.
    pub fn is_risky(&self) -> bool {
        self.effect != Effect::Pure && self.hints.destructive != Some(false)
    }

    /// Fills arguments in: `complete` are those that there are and those that the agent and the state give. Answers to
    /// questions of the call stay bound to the former alone.
    pub fn fill_in(&mut self, complete: Arc<Value>) {
        if !Arc::ptr_eq(&complete, &self.args) {
            self.bare = Some(std::mem::replace(&mut self.args, complete));
        }
    }

    /// Says that the arguments, as they are now, were checked against the tool's schema.
    pub fn set_checked(&mut self) {
        self.checked = Some(self.args.clone());
    }

    /// True if the arguments are those that were checked.
    pub fn is_checked(&self) -> bool {
        self.checked.as_ref().is_some_and(|checked| Arc::ptr_eq(checked, &self.args))
    }

    /// The arguments as a type.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if they do not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&*self.args).map_err(|e| {
            Error::new(ErrorKind::InvalidArguments, format!("Invalid arguments for tool '{}': {e}", self.call.name))
        })
    }

    /// Stable over every attempt and every process: what an idempotent effect is done under. Another step's call has
    /// another key, even if the model gave it the same id.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}/{}", self.cx.ids().run_id, self.cx.step(), self.call.id)
    }

    /// Tells the readers of the run's events how far the tool is, or hands them a piece of its result: an
    /// [`EventKind::ToolProgress`]. It is told at once and kept nowhere, and the model does not see it.
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

    /// Makes a decision of this call once, however often the call is gone on with: see [`RunCx::decide`].
    ///
    /// # Errors
    /// As [`RunCx::decide`].
    pub async fn decide(&self, name: &str, decide: impl Future<Output = Result<Value>> + Send) -> Result<Value> {
        self.cx.decide(&format!("{}/{name}", self.call.id), decide).await
    }

    /// Makes sure that the run is still this process's. The run has looked before it called the tool; a tool that works for long before an effect which
    /// must not happen twice looks again right before that: its process may have been stopped meanwhile, and another one may have taken the
    /// session over.
    ///
    /// It costs nothing while the lease of the session cannot have run out; otherwise the store is asked.
    ///
    /// ```
    /// # use agent_core::{Result, ToolOutput, ToolRequest};
    /// # async fn prepare(_: &ToolRequest) -> Result<String> { Ok("an order".into()) }
    /// # async fn pay(_: String, _key: String) -> Result<()> { Ok(()) }
    /// async fn call(req: ToolRequest) -> Result<ToolOutput> {
    ///     let order = prepare(&req).await?; // this takes a while
    ///     req.prove().await?; // right before the effect; in front of `prepare` it would prove nothing
    ///     pay(order, req.idempotency_key()).await?;
    ///     Ok(ToolOutput::text("paid"))
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the session is another process's, or nobody can say. Pass it on: the run appends no more
    /// and ends with it.
    pub async fn prove(&self) -> Result<()> {
        self.cx.0.log.prove().await
    }

    /// Has a run of an agent that is served elsewhere driven there, and waits for its end: in another process, perhaps on another machine, and for as long as
    /// it takes. When this run is driven again, it waits for the same run; when this call is cancelled, so is that. What that used counts against
    /// this run's budgets once it is over, however it ended; of one that was given up nobody knows it.
    ///
    /// Only for a tool that [delegates](crate::ToolOptions::delegates), under an engine that sends runs elsewhere.
    ///
    /// # Errors
    /// As [`Durable::served`](crate::engine::Durable::served).
    pub async fn served(&self, run: &ServedRun) -> Result<ServedEnd> {
        if !self.delegates {
            // The call would be kept as one step, within which the engine can neither wait nor let go of the process.
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
    /// The question is noted in the run, so a layer that turns the error into something else cannot swallow it. The answer
    /// holds for this call with these arguments and this payload alone; if they are others when the run goes on, it is asked
    /// again.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] while there is no answer; [`ErrorKind::InvalidRequest`] if the answer has another form.
    pub fn ask<T: DeserializeOwned>(&self, kind: &str, payload: Value) -> Result<T> {
        self.ask_with(Ask::new(kind, payload))?.parse()
    }

    /// As [`ask`](Self::ask), for a question that can come up again and then needs another answer: `nonce` tells which.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_once<T: DeserializeOwned>(&self, kind: &str, nonce: &str, payload: Value) -> Result<T> {
        self.ask_with(Ask::new(kind, payload).nonce(nonce))?.parse()
    }

    /// As [`ask`](Self::ask), for a question with a schema, an end or a person of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] while there is no answer; [`ErrorKind::Timeout`] if there can be none any more, and the
    /// question has no default.
    pub fn ask_with(&self, ask: Ask) -> Result<Answer> {
        let args = self.bare.as_ref().unwrap_or(&self.args);
        self.cx.ask_at(&self.call.id, self.cx.step(), &json!([self.call.name, args]), ask)
    }
}
