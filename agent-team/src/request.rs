//! Requests of team runs.

use std::sync::Arc;

use agent_core::{Answer, Budget, Caps, Part};

/// Input of a team run.
///
/// ```
/// use agent_team::TeamRequest;
///
/// let request = TeamRequest::user("Release version 2.").session("ada/release-2").run_id("r1");
/// assert_eq!(request.session.as_deref(), Some("ada/release-2"));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TeamRequest {
    /// Messages to the leader, each as its content. Empty to resume without a new message.
    pub messages: Vec<Vec<Part>>,
    /// Session of the team. Default: a new session.
    pub session: Option<Arc<str>>,
    /// Id of the team's run, and idempotency key of the request. Default: a generated id.
    pub run_id: Option<Arc<str>>,
    /// Answers to questions of members: the member, the id of the question, and the answer.
    pub answers: Vec<(Arc<str>, String, Answer)>,
    /// Caps of a new run, beside those of the team. They hold for all members together, over restarts.
    pub caps: Option<Caps>,
    /// Budget from which the members' runs also reserve, in this process: that of a caller.
    pub budget: Option<Budget>,
    /// User on whose behalf the members run.
    pub user: Option<Arc<str>>,
    /// W3C trace context of the caller: the parent of the spans of all members' runs. Default: one that is
    /// derived from the id of the team's run, so that they belong to one trace.
    pub traceparent: Option<Arc<str>>,
    /// True if the members' providers are asked to stream. Default: the agents' setting.
    pub stream: Option<bool>,
    /// True if members' runs are resumed even if their agents have changed. Default: false.
    pub allow_changed_agents: bool,
}

impl TeamRequest {
    /// Creates a request with one message to the leader.
    pub fn user(text: impl Into<String>) -> Self {
        Self::parts(vec![Part::text(text)])
    }

    /// Creates a request with one message to the leader: text and attachments.
    pub fn parts(parts: Vec<Part>) -> Self {
        Self { messages: vec![parts], ..Self::default() }
    }

    /// Creates a request that resumes the newest run of a session: after its process died, or after it
    /// was suspended.
    pub fn resume(session: impl Into<Arc<str>>) -> Self {
        Self::default().session(session)
    }

    /// Sets the session of the team, which is created on first use. A later run of the same session
    /// continues with the same members, tasks and messages.
    #[must_use]
    pub fn session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the id of the run. A repeated request with the same id starts nothing: it resumes the run,
    /// or returns its end.
    #[must_use]
    pub fn run_id(mut self, run_id: impl Into<Arc<str>>) -> Self {
        self.run_id = Some(run_id.into());
        self
    }

    /// Answers a question of a member.
    #[must_use]
    pub fn answer(
        mut self,
        member: impl Into<Arc<str>>,
        question: impl Into<String>,
        answer: impl Into<Answer>,
    ) -> Self {
        self.answers.push((member.into(), question.into(), answer.into()));
        self
    }

    /// Sets caps of a new run, beside those of the team: on all members together, over restarts.
    #[must_use]
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = Some(caps);
        self
    }

    /// Sets a budget from which the members' runs also reserve, beside that of the team.
    #[must_use]
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.budget = Some(budget.clone());
        self
    }

    /// Sets the user on whose behalf the members run.
    #[must_use]
    pub fn on_behalf_of(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the trace context of the members' runs: the value of a `traceparent` header.
    #[must_use]
    pub fn traceparent(mut self, traceparent: impl Into<Arc<str>>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Sets whether the members' providers are asked to stream.
    #[must_use]
    pub fn streaming(mut self, stream: bool) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Resumes members' runs even if their agents have changed.
    #[must_use]
    pub fn allow_changed_agents(mut self) -> Self {
        self.allow_changed_agents = true;
        self
    }
}
