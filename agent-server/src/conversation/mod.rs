//! Conversion of a front end's conversation into a run.

mod media;
mod news;
mod resume;

use agent::{
    Checkpoint, Message, Part, RunRequest, WhenWaiting,
    dispatch::Signal,
    event::Position,
    journal::{EntryBody, RunRecord, RunStatus, each_entry},
    message::UserMessage,
    run::Answer,
    tool::ToolSpec,
};

pub use self::resume::interrupt_id;
pub(crate) use self::{
    media::check_media,
    news::IncomingMessage,
    resume::{PAUSED, Resume, ResumeStatus, is_yes_or_no},
};
use crate::{
    ApiError, App, Caller, FoundRun, Scope, Start,
    client_tools::{self, CallResult},
    follow,
    speech::CLIENT_TOOL,
};

/// Request of a front end in a conversation, with all its earlier messages.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// User messages after the agent's last message.
    pub(crate) said: Vec<IncomingMessage>,
    /// Context that the front end adds to the last user message.
    pub(crate) context: Option<Part>,
    /// Results of calls of the front end's own tools, new or not.
    pub(crate) results: Vec<CallResult>,
    /// Answers to the interrupts of a suspended run.
    pub(crate) resume: Vec<Resume>,
    /// Decisions that the client repeats with the whole conversation: those about interrupts that
    /// are not open are ignored.
    pub(crate) decided: Vec<Resume>,
    /// Tools of the front end.
    pub(crate) tools: Vec<ToolSpec>,
}

/// A run, and the position after which its events belong to the request.
pub(crate) struct Began {
    pub(crate) run: FoundRun,
    pub(crate) after: Option<Position>,
}

impl Turn {
    /// Forgets earlier results of a call: the agent called with the same id again.
    pub(crate) fn called(&mut self, call: &str) {
        self.results.retain(|result| result.call != call);
    }

    /// Starts a run of the agent in a session, or resumes the one that is suspended there. `shape`
    /// adds protocol-specific options.
    ///
    /// # Errors
    /// 400 if the request contains nothing new; 409 if an answer does not match an open question,
    /// or an open question for a person is not answered.
    pub(crate) async fn begin(
        mut self,
        app: &App,
        caller: &Caller,
        agent: &str,
        session: &str,
        shape: impl FnOnce(RunRequest) -> RunRequest,
    ) -> Result<Began, ApiError> {
        caller.require(Scope::Run)?;
        let own = app.agent(caller, agent)?.agent().tools().to_vec();
        let tools = client_tools::tools(std::mem::take(&mut self.tools), &own)?;
        let shape = |request: RunRequest| shape(tools.bring(request));
        let kept = app.sessions().session(&app.session_id(caller, session), agent);
        let known = news::known(&self.said, &kept.history().await?);
        self.said.drain(..known);
        let said = self.said.last().map(|saying| (saying.id.clone(), said_as_bytes(saying)));
        let messages = self.messages();
        check_media(&messages)?;
        if self.is_for_the_paused()
            && let Some(began) = went_on(app, caller, &kept.runs().await?, session).await?
        {
            return Ok(began);
        }
        let open = app.open(&app.session_id(caller, session), agent).await?;
        if let Some(open) = &open
            && let Some(answers) = self.goes_on(open, caller, &messages)?
        {
            if !self.resume.is_empty() || !resume::open_ones(open, &self.decided).is_empty() {
                caller.require(Scope::Answer)?;
            }
            let run = app.run(caller, &open.ids.run_id, Some(session)).await?;
            let after = follow::at_rest(app, &run).await?;
            let run = app.go_on(caller, &run, answers, shape).await?;
            for message in messages {
                run.tell_run(Signal::Steer(message)).await?;
            }
            return Ok(Began { run, after: Some(after) });
        }
        if !self.resume.is_empty() {
            return Err(ApiError::conflict("answer_refused", "there is no open interrupt in this conversation"));
        }
        let Some((key, said)) = said else {
            let message = "the request contains no new message: the last one is the agent's, and no call is open";
            return Err(ApiError::invalid(message));
        };
        let mut request = shape(RunRequest::new(messages));
        // A new message supersedes open calls of the client's own tools; questions to people stay
        // open.
        if open.is_some_and(|open| open.questions.iter().all(|question| question.kind == CLIENT_TOOL)) {
            request = request.when_waiting(WhenWaiting::Supersede);
        }
        let start = Start::new(agent, request).session(session);
        // The same id with other content is another request.
        let start = if key.is_empty() { start } else { start.key_of("message", key).body(&said) };
        let run = app.start(caller, start).await?;
        Ok(Began { run, after: None })
    }

    /// Returns the answers that resume an incomplete run; none if the request is a new message.
    fn goes_on(
        &self,
        open: &Checkpoint,
        caller: &Caller,
        messages: &[Message],
    ) -> Result<Option<Vec<(String, Answer)>>, ApiError> {
        let mut answers = resume::answers(open, &self.resume)?;
        answers.extend(resume::answers(open, &resume::open_ones(open, &self.decided))?);
        answers.extend(client_tools::answers(open, &self.results));
        // A paused, cancelled or failed run has no questions: it is resumed if the request contains
        // nothing else.
        let is_asked = !self.resume.is_empty() || !answers.is_empty();
        let is_retried = open.questions.is_empty() && messages.is_empty();
        let by = |(id, answer): (String, Answer)| (id, answer.by(caller.subject()));
        Ok((is_asked || is_retried).then(|| answers.into_iter().map(by).collect()))
    }

    /// True if the request only resumes a paused run.
    fn is_for_the_paused(&self) -> bool {
        self.said.is_empty()
            && !self.resume.is_empty()
            && self.resume.iter().all(|resume| resume.interrupt_id == PAUSED)
    }

    fn messages(&mut self) -> Vec<Message> {
        let mut said = std::mem::take(&mut self.said);
        if let Some(last) = said.last_mut() {
            last.parts.extend(self.context.take());
        }
        said.into_iter().map(|saying| Message::User(UserMessage::new(saying.parts))).collect()
    }
}

/// Returns the newest run of a conversation if it resumed after a pause by the server: a draining
/// server pauses runs, and the next process resumes them without a request.
async fn went_on(app: &App, caller: &Caller, runs: &[RunRecord], session: &str) -> Result<Option<Began>, ApiError> {
    let Some(newest) = runs.iter().rev().find(|run| !run.is_edit && !run.undone) else { return Ok(None) };
    let run = app.run(caller, &newest.run_id, Some(session)).await?;
    if !run.is_live() && newest.status == Some(RunStatus::Paused) {
        return Ok(None);
    }
    let mut paused = None;
    each_entry(&**app.journal(), run.store_name(), newest.seq, |entry| {
        if let EntryBody::RunEnded { status: RunStatus::Paused, .. } = entry.body
            && entry.run == newest.run_id
        {
            paused = Some(Position { seq: entry.seq, after: 0 });
        }
    })
    .await?;
    Ok(paused.map(|after| Began { run, after: Some(after) }))
}

fn said_as_bytes(saying: &IncomingMessage) -> Vec<u8> {
    serde_json::to_vec(&saying.parts).unwrap_or_default()
}
