//! A turn: from the user's prompt to the stop reason.

use std::sync::atomic::Ordering;

use agent::{ErrorKind, ExitReason, Message, Question, RunRequest, WhenWaiting, dispatch::Signal, event::Position};
use futures::StreamExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    desk::{Editor, Refusal},
    elicitation, permission,
    told::{self, Told},
};
use crate::{
    ApiError, FoundRun, Start,
    conversation::{Began, is_yes_or_no},
    follow::{self, WhenGone, follow},
    speech::Ending,
};

impl Editor {
    /// Runs the agent and returns the protocol's stop reason.
    pub(super) async fn turn(
        &self,
        session: &str,
        said: Message,
        end: &CancellationToken,
    ) -> Result<&'static str, Refusal> {
        let Began { mut run, mut after } = self.begin(session, said).await?;
        loop {
            // A client that disconnects during a turn cancels it.
            let _given_up = run.viewer();
            self.tell(session, &run, after, end).await?;
            let questions = match follow::ending(&run).await? {
                Ending::Finished { reason, .. } => return Ok(stop_reason(&reason)),
                Ending::Cancelled | Ending::Paused => return Ok("cancelled"),
                Ending::Failed { kind: ErrorKind::ContentFiltered, .. } => return Ok("refusal"),
                Ending::Failed { message, .. } => return Err(Refusal::failed(message)),
                Ending::Interrupted(questions) => questions,
            };
            let (asked, open): (Vec<_>, Vec<_>) = questions.into_iter().partition(is_yes_or_no);
            if !open.is_empty() && !self.shows_forms.load(Ordering::Relaxed) {
                self.say(session, &open).await;
                return Ok("end_turn");
            }
            let mut answers = Vec::new();
            for question in &asked {
                let told = self.asked("session/request_permission", permission::request(session, question), end).await;
                let Some((id, answer)) = permission::answer(question, told.as_ref()) else { return Ok("cancelled") };
                answers.push((id, answer.by(self.caller.subject())));
            }
            for question in &open {
                let told = self.asked("elicitation/create", elicitation::request(session, question), end).await;
                let Some((id, answer)) = elicitation::answer(question, told.as_ref()) else {
                    // The next prompt may answer it.
                    return Ok(if end.is_cancelled() { "cancelled" } else { "end_turn" });
                };
                answers.push((id, answer.by(self.caller.subject())));
            }
            after = Some(follow::at_rest(&self.app, &run).await?);
            run = self.app.go_on(&self.caller, &run, answers, |request| request).await?;
        }
    }

    /// Sends a request to the client, and waits for its response until the turn is cancelled.
    async fn asked(&self, method: &str, params: Value, end: &CancellationToken) -> Option<Value> {
        tokio::select! {
            told = self.ask(method, params) => told,
            () = end.cancelled() => None,
        }
    }

    /// Streams a run until it stops; cancels it when the turn is cancelled.
    async fn tell(
        &self,
        session: &str,
        run: &FoundRun,
        after: Option<Position>,
        end: &CancellationToken,
    ) -> Result<(), ApiError> {
        let mut updates =
            Box::pin(follow(self.app.stream()?, run.clone(), after, WhenGone::GoOn, Told::default()).await?);
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                update = updates.next() => match update {
                    Some(update) => self.update(session, update).await,
                    None => return Ok(()),
                },
                () = end.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    run.tell_run(Signal::Cancel).await?;
                }
            }
        }
    }

    /// Starts a run, or answers the one open question.
    async fn begin(&self, session: &str, said: Message) -> Result<Began, ApiError> {
        let (app, caller) = (&self.app, &self.caller);
        let kept = app.sessions().session(&app.session_id(caller, session), &*self.agent);
        if let Some(open) = kept.unfinished().await?
            && let [question] = &*open.questions
            && !is_yes_or_no(question)
        {
            let run = app.run(caller, &open.ids.run_id, Some(session)).await?;
            let after = follow::at_rest(app, &run).await?;
            let (id, answer) = question.answer(Value::from(said.text()));
            let answers = vec![(id, answer.by(caller.subject()))];
            let run = app.go_on(caller, &run, answers, |request| request).await?;
            return Ok(Began { run, after: Some(after) });
        }
        // The new prompt supersedes permission requests without an answer.
        let request = RunRequest::new(vec![said]).when_waiting(WhenWaiting::Supersede);
        let run = app.start(caller, Start::new(&*self.agent, request).session(session)).await?;
        Ok(Began { run, after: None })
    }

    /// Sends the questions as text: the next prompt answers them.
    async fn say(&self, session: &str, questions: &[Question]) {
        let words = |question: &Question| {
            let message = ["message", "question"].iter().find_map(|member| question.payload[member].as_str());
            message.map_or_else(|| format!("{}: {}", question.kind, question.payload), str::to_owned)
        };
        let text = questions.iter().map(words).collect::<Vec<_>>().join("\n");
        self.update(session, told::chunk("agent_message_chunk", &text)).await;
    }
}

fn stop_reason(reason: &ExitReason) -> &'static str {
    match reason {
        ExitReason::StepLimit | ExitReason::Budget | ExitReason::Deadline => "max_turn_requests",
        ExitReason::Length => "max_tokens",
        ExitReason::ContentFilter => "refusal",
        _ => "end_turn",
    }
}
