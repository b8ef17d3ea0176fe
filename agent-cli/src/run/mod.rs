//! A run in a terminal: its answer, its progress, its questions, and its end.

mod ask;
mod progress;

use std::pin::pin;

use agent::{
    Agent, Checkpoint, Error, ErrorKind, EventKind, Result, RunEnd, RunRequest, core::Chunk, event::Event, run::Answer,
};
pub(crate) use agent_server::decision;
use futures::StreamExt;
use serde_json::{Value, json};

pub(crate) use self::ask::{about, always, always_what, answers as ask_at_terminal, json_or_text, somebody_is_there};
use self::progress::Progress;
use crate::{
    cli::Global,
    output::{End, Paint, ended_early, line, plain, print, print_json},
};

/// Drives a run to its end, or to a question that nobody is there to answer.
pub(crate) struct Driver<'a> {
    agent: &'a Agent,
    json: bool,
    /// Questions are asked at the terminal.
    asks: bool,
    allow_changed_agent: bool,
    /// Only the final answer is written: text before it may not match the schema.
    final_only: bool,
    /// The run cannot be resumed.
    by_hand: bool,
    global: &'a Global,
    /// The newest byte of the answer that was written, if any.
    last: Option<char>,
    /// End of the run by a signal, if one arrived.
    stopped: Option<End>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(agent: &'a Agent, global: &'a Global) -> Self {
        let asks = !global.json && ask::somebody_is_there();
        Self {
            agent,
            json: global.json,
            asks,
            allow_changed_agent: false,
            final_only: false,
            by_hand: false,
            global,
            last: None,
            stopped: None,
        }
    }

    /// Writes the final answer alone, and no text while it is streamed.
    pub(crate) fn final_only(mut self, wanted: bool) -> Self {
        self.final_only = wanted;
        self
    }

    /// Drives a single call, whose run nothing can resume.
    pub(crate) fn call_by_hand(mut self) -> Self {
        self.by_hand = true;
        self
    }

    /// Never asks at the terminal.
    pub(crate) fn no_input(mut self, wanted: bool) -> Self {
        self.asks &= !wanted;
        self
    }

    /// Goes on though the agent is another than it was.
    pub(crate) fn allow_changed_agent(mut self, wanted: bool) -> Self {
        self.allow_changed_agent = wanted;
        self
    }

    /// Runs, asks, and goes on until the run ends.
    ///
    /// # Errors
    /// What failed the run.
    pub(crate) async fn drive(mut self, mut request: RunRequest) -> Result<End> {
        loop {
            let request_now = if self.allow_changed_agent { request.allow_changed_agent() } else { request };
            let end = self.once(request_now).await;
            let end = match end {
                Ok(end) => end,
                Err(error) => {
                    self.end_line()?;
                    return self.stopped.filter(|_| error.kind() == ErrorKind::Cancelled).ok_or(error);
                }
            };
            let answers = match &end {
                RunEnd::Interrupted(checkpoint) if self.asks && self.stopped.is_none() => tokio::select! {
                    answers = ask::answers(&checkpoint.questions) => answers?,
                    stopped = interrupted() => {
                        self.stopped = Some(stopped);
                        None
                    }
                },
                _ => None,
            };
            match (end, answers) {
                (RunEnd::Interrupted(checkpoint), Some(answers)) => {
                    request = RunRequest::resume_with(*checkpoint, answers).streaming(true);
                }
                (end, _) => return self.ended(&end),
            }
        }
    }

    /// One attempt: until the run ends or waits. Ctrl-C and SIGTERM cancel it, so that the journal says so and the lease
    /// is released; a second signal does not wait for its end.
    async fn once(&mut self, request: RunRequest) -> Result<RunEnd> {
        let mut run = self.agent.start(request);
        let handle = run.handle();
        let mut progress = Progress::new(!self.json);
        let mut stop = pin!(interrupted());
        loop {
            tokio::select! {
                event = run.next() => match event {
                    Some(event) => {
                        if let Err(error) = self.event(&event, &mut progress) {
                            handle.cancel(); // nobody reads any more; the journal is to say so
                            drop(run.await);
                            return Err(error);
                        }
                    }
                    None => break,
                },
                stopped = &mut stop => {
                    self.stopped = Some(stopped);
                    if handle.cancellation().is_cancelled() {
                        return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
                    }
                    handle.cancel();
                    stop.set(interrupted());
                }
            }
        }
        progress.clear();
        run.await
    }

    fn event(&mut self, event: &Event, progress: &mut Progress) -> Result<()> {
        if self.json {
            // For the person who started the program that reads the events.
            if let EventKind::Warning { message } = &event.kind {
                eprintln!("{}", Paint::stderr().dim(&format!("! {}", line(message, 2000))));
            }
            let value = serde_json::to_value(event).map_err(|e| Error::new(ErrorKind::Protocol, e.to_string()))?;
            return print_json(&value);
        }
        match &event.kind {
            EventKind::Chunk(Chunk::Text { .. }) if self.final_only => Ok(()),
            EventKind::Chunk(Chunk::Text { delta, .. }) if event.ids.depth == 0 && !delta.is_empty() => {
                progress.clear();
                self.last = delta.chars().last();
                print(delta)
            }
            // Text before a tool call is on a line of its own.
            EventKind::ModelAnswered { message, .. } if event.ids.depth == 0 && message.has_calls() => {
                self.end_line()?;
                progress.event(event);
                Ok(())
            }
            EventKind::Chunk(Chunk::Restart) if event.ids.depth == 0 => {
                self.end_line()?;
                progress.note("the answer broke off, and is begun again");
                Ok(())
            }
            _ => {
                progress.event(event);
                Ok(())
            }
        }
    }

    fn end_line(&mut self) -> Result<()> {
        match self.last.take() {
            None | Some('\n') => Ok(()),
            Some(_) => print("\n"),
        }
    }

    fn ended(&mut self, end: &RunEnd) -> Result<End> {
        if self.json {
            print_json(&in_json(end))?;
            return Ok(self.status(end));
        }
        // An answer that was not streamed: a tool's, or one that a hook wrote.
        if let RunEnd::Finished(finished) = end
            && self.last.is_none()
            && !finished.answer.is_empty()
        {
            print(&finished.answer)?;
            self.last = finished.answer.chars().last();
        }
        self.end_line()?;
        let paint = Paint::stderr();
        match end {
            RunEnd::Finished(finished) if ended_early(&finished.reason) => {
                let how = if finished.answer.is_empty() { "without an answer" } else { "early" };
                eprintln!("{}", paint.dim(&format!("agent: the run ended {how}: {}", finished.reason)));
            }
            RunEnd::Interrupted(_) if self.by_hand => {
                eprintln!(
                    "agent: the call was not run: confirm it at a terminal, or approve the tool with --allow-tool"
                );
            }
            RunEnd::Interrupted(checkpoint) => eprint!("{}", plain(&waiting(checkpoint, self.global))),
            RunEnd::Paused(checkpoint) | RunEnd::Cancelled(checkpoint) => {
                let session = &checkpoint.ids.session;
                eprintln!(
                    "{}",
                    paint.dim(&format!("agent: interrupted. Go on with: agent resume {}", quoted(session)))
                );
            }
            _ => {}
        }
        Ok(self.status(end))
    }

    /// Exit status: that of the signal, unless the run finished nevertheless.
    fn status(&self, end: &RunEnd) -> End {
        self.stopped.filter(|_| !matches!(end, RunEnd::Finished(_))).unwrap_or_else(|| End::of_run(end))
    }
}

/// Waits for Ctrl-C, SIGINT or SIGTERM.
pub(crate) async fn interrupted() -> End {
    match agent::shutdown_signal().await {
        Ok("SIGTERM") => End::Terminated,
        Ok(_) => End::Interrupted,
        Err(_) => std::future::pending().await, // no signal can be heard here
    }
}

/// The end of a run, as the last line of its events.
fn in_json(end: &RunEnd) -> Value {
    match end {
        RunEnd::Finished(finished) => json!({
            "end": "finished", "session": finished.ids.session, "run": finished.ids.run_id, "answer": finished.answer,
            "reason": finished.reason, "steps": finished.steps, "usage": finished.tree_usage, "state": finished.state,
        }),
        _ => {
            let checkpoint = end.checkpoint();
            json!({
                "end": end.as_str(), "session": checkpoint.map(|c| &c.ids.session), "run": checkpoint.map(|c| &c.ids.run_id),
                "questions": checkpoint.map(|c| &c.questions),
            })
        }
    }
}

/// Describes the open questions of a run, and how to answer them.
pub(crate) fn waiting(checkpoint: &Checkpoint, global: &Global) -> String {
    let session = quoted(&checkpoint.ids.session);
    let count = checkpoint.questions.len();
    let mut text = format!("agent: session {session} waits for {count} answer{}\n", if count == 1 { "" } else { "s" });
    for question in &checkpoint.questions {
        text.push_str(&format!("  {}  {}\n", question.id, line(&ask::about(question), 200)));
    }
    text.push_str(&how_to_answer(checkpoint, &session, global));
    text
}

/// The command line that answers the questions.
fn how_to_answer(checkpoint: &Checkpoint, session: &str, global: &Global) -> String {
    if global.store.as_deref() == Some("memory") {
        return "The session is lost with this process: run at a terminal, approve tools with --allow-tool, or name a \
                file with --store\n"
            .to_owned();
    }
    // A URL may contain a password; the user knows it.
    let store = global.store.as_deref().filter(|store| !store.contains("://"));
    let store = store.map_or_else(String::new, |store| format!("--store {} ", quoted(store)));
    let file =
        global.file.as_ref().map_or_else(String::new, |file| format!("--file {} ", quoted(&file.to_string_lossy())));
    let is_form = |question: &agent::Question| question.kind == "ask_user";
    let answer = match checkpoint.questions.iter().all(is_form) && !checkpoint.questions.is_empty() {
        true => "--answer '[\"..\"]' with one text for each question",
        false => "--allow (or --deny, --edit, --answer)",
    };
    format!("Answer with: agent {store}{file}approve {session} {answer}, and the options of the run\n")
}

/// As a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Answers by the ids of their questions.
pub(crate) type Answers = Vec<(String, Answer)>;
