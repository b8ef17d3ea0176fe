//! [`Conversation`]: a session, as a caller talks with an agent in it.

use std::{fmt, sync::Arc};

use agent_core::{Checkpoint, Error, Finished, History, Message, Question, Result, RunEnd, RunRequest};
use serde_json::Value;

use crate::{Agent, Run};

/// One conversation with an agent: the runs of a session, one after the other.
///
/// The agent needs a store. Returned by [`Agent::session`]; cheap to clone.
///
/// ```
/// use agent_core::{MemoryJournal, testing::{ScriptedModel, Turn}};
/// use agent_exec::Agent;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = ScriptedModel::new([Turn::text("Hello, Ada."), Turn::text("You are Ada.")]);
/// let agent = Agent::builder("assistant", model).store(MemoryJournal::default()).build()?;
/// let ada = agent.session("ada");
/// assert_eq!(ada.send("I am Ada.").await?.answer, "Hello, Ada.");
/// assert_eq!(ada.send("Who am I?").await?.answer, "You are Ada.");
/// assert_eq!(ada.history().await?.len(), 4);
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Conversation {
    agent: Agent,
    session: Arc<str>,
}

impl Agent {
    /// Returns the conversation in the session `name`, which begins with its first message. A
    /// [`SessionId`](crate::SessionId) is a name too.
    pub fn session(&self, name: impl Into<Arc<str>>) -> Conversation {
        Conversation { agent: self.clone(), session: name.into() }
    }

    /// Runs a request to its end, and answers its questions meanwhile: with what `answer` returns for
    /// each of them. For command lines and tests; a service keeps the questions and resumes the run
    /// when somebody has answered.
    ///
    /// ```
    /// use agent_core::{Error, Question, RunRequest, ToolOutput, ToolRequest, testing::{ScriptedModel, Turn}};
    /// use agent_exec::Agent;
    /// use agent_tools::from_schema;
    /// use serde_json::{Value, json};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let pay = from_schema("pay", "Pays.", json!({"type": "object"}), |_: Value, req: ToolRequest| async move {
    ///     let may: bool = req.ask("may_i", json!({"amount": 3}))?;
    ///     Ok::<_, Error>(ToolOutput::text(if may { "paid" } else { "not paid" }))
    /// });
    /// let model = ScriptedModel::new([Turn::call("c", "pay", json!({})), Turn::text("It is paid.")]);
    /// let agent = Agent::builder("clerk", model).tool(pay).build()?;
    /// let answer = async |question: Question| Ok(json!(question.payload["amount"] == 3));
    /// let end = agent.run_answering(RunRequest::user("Pay."), answer).await?;
    /// assert_eq!(end.text()?, "It is paid.");
    /// # Ok::<(), agent_core::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Those of the run and of `answer`.
    pub async fn run_answering(
        &self,
        request: RunRequest,
        mut answer: impl AsyncFnMut(Question) -> Result<Value>,
    ) -> Result<RunEnd> {
        let mut next = request.clone();
        loop {
            let checkpoint = match self.start(next).await? {
                RunEnd::Interrupted(checkpoint) => checkpoint,
                end => return Ok(end),
            };
            let mut answers = Vec::with_capacity(checkpoint.questions.len());
            for question in &checkpoint.questions {
                answers.push((question.id.clone(), answer(question.clone()).await?));
            }
            next = request.clone(); // its options hold for each part of the run
            next.input = RunRequest::resume(*checkpoint, answers).input;
        }
    }
}

impl Conversation {
    /// The session's name.
    pub fn name(&self) -> &Arc<str> {
        &self.session
    }

    /// Creates the request of a message, for further options: start it with [`Agent::start`].
    pub fn request(&self, message: impl Into<String>) -> RunRequest {
        RunRequest::new(vec![Message::user(message)]).session(self.session.clone())
    }

    /// Starts the run of a message: read it as a stream of events, or of [texts](Run::texts).
    pub fn start(&self, message: impl Into<String>) -> Run {
        self.agent.start(self.request(message))
    }

    /// Sends a message and returns the finished run.
    ///
    /// # Errors
    /// Those of the run and of [`RunEnd::into_result`]; [`ErrorKind::Config`] if the agent has no
    /// store, and would forget the conversation.
    ///
    /// [`ErrorKind::Config`]: agent_core::ErrorKind::Config
    pub async fn send(&self, message: impl Into<String>) -> Result<Finished> {
        self.stored()?;
        self.start(message).await?.into_result()
    }

    /// Sends a message and answers the questions of its run, as in [`Agent::run_answering`].
    ///
    /// # Errors
    /// Those of [`send`](Self::send) and of `answer`.
    pub async fn send_answering(
        &self,
        message: impl Into<String>,
        answer: impl AsyncFnMut(Question) -> Result<Value>,
    ) -> Result<Finished> {
        self.stored()?;
        self.agent.run_answering(self.request(message), answer).await?.into_result()
    }

    /// Resumes the newest run, with answers to its questions by question id.
    pub fn resume(&self, answers: impl IntoIterator<Item = (String, Value)>) -> Run {
        self.agent.start(RunRequest::recover(self.session.clone(), answers))
    }

    /// Returns the checkpoint of the newest run, unless it is finished.
    ///
    /// # Errors
    /// Those of [`Agent::unfinished`].
    pub async fn unfinished(&self) -> Result<Option<Checkpoint>> {
        self.agent.unfinished(&self.session).await
    }

    /// Returns the conversation so far.
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the agent has none.
    pub async fn history(&self) -> Result<History> {
        self.agent.sessions()?.named(self.session.clone(), self.agent.name()).history().await
    }

    fn stored(&self) -> Result<()> {
        let forgets = |e: Error| e.map_message(|m| format!("the conversation would be forgotten: {m}"));
        self.agent.sessions().map(drop).map_err(forgets)
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("session", &self.session).finish_non_exhaustive()
    }
}
