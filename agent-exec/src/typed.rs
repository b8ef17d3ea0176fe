//! [`TypedAgent`]: an agent whose answers are values of a type.

use std::fmt;

use agent_core::{Finished, Result, RunRequest};
use agent_tools::{Structured, schemars::JsonSchema};
use serde::de::DeserializeOwned;

use crate::{Agent, Run};

/// An agent that answers with values of the type `T`. Returned by [`Agent::typed`]; cheap to clone.
///
/// It shares model, tools, middleware, store and budget with the agent that it was made of. Its
/// [fingerprint](Agent::fingerprint) is another one: a run of it is resumed by it.
pub struct TypedAgent<T> {
    agent: Agent,
    format: Structured<T>,
}

impl Agent {
    /// Returns this agent with the output type `T`: [`Structured`] with its defaults is its innermost
    /// middleware, and replaces another `Structured`.
    ///
    /// ```
    /// use agent_core::{RunRequest, testing::{ScriptedModel, Turn}};
    /// use agent_exec::Agent;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Ticket {
    ///     title: String,
    ///     urgent: bool,
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let model = ScriptedModel::new([Turn::text(r#"{"title": "Printer on fire", "urgent": true}"#)]);
    /// let desk = Agent::builder("desk", model).system("Make a ticket of the message.").build()?;
    /// let tickets = desk.typed::<Ticket>()?;
    /// let ticket = tickets.run("The printer burns!").await?;
    /// assert!(ticket.urgent && ticket.title == "Printer on fire");
    /// # Ok::<(), agent_core::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the schema of `T` is invalid, or if the
    /// agent's middlewares forbid one more inside of them.
    pub fn typed<T: DeserializeOwned + JsonSchema + 'static>(&self) -> Result<TypedAgent<T>> {
        self.typed_with(Structured::new()?)
    }

    /// As [`typed`](Self::typed), with the mode, the checks and the retries of `format`.
    ///
    /// # Errors
    /// Those of [`typed`](Self::typed).
    pub fn typed_with<T: DeserializeOwned + 'static>(&self, format: Structured<T>) -> Result<TypedAgent<T>> {
        let builder = self.to_builder().without_middleware("structured").middleware(format.clone());
        Ok(TypedAgent { agent: builder.build()?, format })
    }

    /// Runs a request to its end, and returns its answer as a `T`. For more than one run, make a
    /// [`typed`](Self::typed) agent once.
    ///
    /// # Errors
    /// Those of [`typed`](Self::typed) and [`TypedAgent::run`].
    pub async fn run_as<T: DeserializeOwned + JsonSchema + 'static>(&self, text: impl Into<String>) -> Result<T> {
        self.typed()?.run(text).await
    }
}

impl<T: DeserializeOwned + 'static> TypedAgent<T> {
    /// Runs on one user message and returns the answer.
    ///
    /// # Errors
    /// Those of the run and of [`read`](Self::read).
    pub async fn run(&self, text: impl Into<String>) -> Result<T> {
        self.read(&self.start(RunRequest::user(text)).await?.into_result()?)
    }

    /// Prepares a run, to read its events or to set its options. [`read`](Self::read) reads its answer.
    pub fn start(&self, request: RunRequest) -> Run {
        self.agent.start(request)
    }

    /// Returns the answer of a finished run.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidAnswer`](agent_core::ErrorKind::InvalidAnswer) if the run ended without an
    /// answer, such as at its step limit.
    pub fn read(&self, finished: &Finished) -> Result<T> {
        self.format.read(&finished.answer)
    }

    /// The agent itself: to resume its runs, or to use it as a sub-agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }
}

impl<T> Clone for TypedAgent<T> {
    fn clone(&self) -> Self {
        Self { agent: self.agent.clone(), format: self.format.clone() }
    }
}

impl<T> fmt::Debug for TypedAgent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedAgent").field("agent", &self.agent).finish_non_exhaustive()
    }
}
