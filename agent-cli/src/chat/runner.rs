//! The agent of a chat: it runs, and its sessions are changed, as the user wishes.

use std::{path::Path, sync::Arc};

use agent::{
    Agent, Error, Message, Part, Result, RunEnd, RunHandle, RunRequest,
    core::{Journal, MemoryJournal},
    event::Event,
    history::{History, ReplaceReason},
    message::UserMessage,
};
use futures::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;

use super::state::{Action, State};
use crate::{
    commands::attached,
    load,
    output::{explained, line, moment},
    store,
};

/// Prompt of a summary.
const SUM_UP: &str = "Sum up this conversation for yourself: what is wanted, what was found and decided, what is open. \
                      Keep names, numbers and paths. Answer with the summary alone.";

/// Messages to the loop.
pub(super) enum Told {
    Event(Box<Event>),
    Ended(Result<RunEnd>),
    Compacted(Result<String>),
}

pub(super) struct Runner {
    agent: Agent,
    journal: Arc<dyn Journal>,
    session: Arc<str>,
    tell: mpsc::Sender<Told>,
    /// The active run.
    handle: Option<RunHandle>,
    /// Attachments of the next message.
    attached: Vec<Part>,
    /// Inputs of prompts.
    inputs: Vec<(String, Value)>,
}

impl Runner {
    pub(super) fn new(agent: Agent, journal: Arc<dyn Journal>, tell: mpsc::Sender<Told>) -> Self {
        Self { agent, journal, session: "".into(), tell, handle: None, attached: Vec::new(), inputs: Vec::new() }
    }

    /// Fills prompts with these.
    pub(super) fn inputs(self, inputs: Vec<(String, Value)>) -> Self {
        Self { inputs, ..self }
    }

    /// Goes to a session and shows what was said in it; without a name, to a new one.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn enter(&mut self, state: &mut State, session: Option<String>) -> Result<()> {
        let is_new = session.is_none();
        let session = match session {
            Some(session) => session,
            None => self.new_session().await?,
        };
        let view = self.side(&session)?.view().await?;
        let open = self.agent.unfinished(&session).await?;
        if is_new || *self.session != *session {
            self.attached.clear(); // it was to go along in another conversation
        }
        self.session = session.as_str().into();
        let info = self.agent.model();
        let model =
            if info.provider.is_empty() { info.name.clone() } else { format!("{}:{}", info.provider, info.name) };
        state.enter(session, (model, info.context_window), &view.history, view.usage);
        match open {
            Some(open) if !open.questions.is_empty() => state.ask(open.questions),
            Some(_) => state.note("The newest run did not come to its end: /resume goes on with it."),
            None => {}
        }
        Ok(())
    }

    /// A name that no session has: two may begin in one minute.
    async fn new_session(&self) -> Result<String> {
        let first = format!("chat-{}", new_name());
        let mut name = first.clone();
        for number in 2.. {
            if self.journal.info(&name).await?.is_none() {
                break;
            }
            name = format!("{first}-{number}");
        }
        Ok(name)
    }

    fn side(&self, session: &str) -> Result<agent::exec::Session> {
        Ok(self.agent.sessions()?.named(session, self.agent.name()))
    }

    /// Cancels the active run, so that the journal records the cancellation.
    pub(super) async fn leave(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.cancel();
            let mut events = handle.events();
            let _ = tokio::time::timeout(std::time::Duration::from_secs(2), async {
                while events.next().await.is_some() {}
            })
            .await;
        }
    }

    /// Takes what a run or a summary says.
    pub(super) async fn take(&mut self, state: &mut State, told: Told) {
        match told {
            Told::Event(event) => state.apply(&event),
            Told::Ended(end) => {
                self.handle = None;
                state.ended(end);
            }
            Told::Compacted(summary) => {
                state.rest();
                if let Err(error) = self.compacted(state, summary).await {
                    state.problem(&explained(&error));
                }
            }
        }
        state.is_changed = true;
    }

    /// Does what the user wants; what cannot be is said on the screen.
    pub(super) async fn act(&mut self, state: &mut State, action: Action) {
        if let Err(error) = self.try_to(state, action).await {
            state.problem(&explained(&error));
        }
    }

    async fn try_to(&mut self, state: &mut State, action: Action) -> Result<()> {
        let is_free = self.handle.is_none() && !state.is_running;
        match action {
            Action::Send(text) => {
                let mut parts = std::mem::take(&mut self.attached);
                parts.push(Part::text(text));
                let message = Message::User(UserMessage::new(parts));
                let request = RunRequest::new(vec![message]).session(self.session.clone());
                let inputs = self.inputs.iter().cloned();
                self.start(state, inputs.fold(request, |request, (name, value)| request.input(name, value)));
            }
            Action::Attach(file) => {
                let part = attached(Path::new(&file))?;
                state.attached(&file, &part);
                self.attached.push(part);
            }
            Action::Steer(text) => match &self.handle {
                Some(handle) => handle.steer(Message::user(text))?,
                None => return Err(Error::config("wait until it is done")),
            },
            Action::Interrupt => {
                if let Some(handle) = &self.handle {
                    handle.cancel();
                }
            }
            Action::Answer(answers) => {
                // The model may be another one since.
                self.start(state, RunRequest::recover_with(self.session.clone(), answers).allow_changed_agent());
            }
            Action::Sessions => self.list(state).await?,
            Action::Quit => {}
            _ if !is_free => return Err(Error::config("a run is under way: Esc interrupts it")),
            Action::Resume => match self.agent.unfinished(&self.session).await? {
                None => return Err(Error::config("there is nothing to go on with: the newest run is finished")),
                Some(open) if !open.questions.is_empty() => state.ask(open.questions),
                Some(_) => self.start(state, RunRequest::recover(self.session.clone(), []).allow_changed_agent()),
            },
            Action::Model(name) => {
                let agent = self.agent.to_builder().model(load::model(Some(&name))?).build()?;
                self.agent = agent;
                state.model_is(name, self.agent.model().context_window);
            }
            Action::Session(name) => self.enter(state, name).await?,
            Action::Undo => self.undo(state).await?,
            Action::Fork(name) => {
                if self.journal.info(&name).await?.is_some() {
                    return Err(Error::config(format!("there is a session '{name}': a fork needs a new one")));
                }
                let history = self.side(&self.session)?.history().await?;
                self.side(&name)?.extend(history.iter().cloned()).await?;
                self.enter(state, Some(name)).await?;
            }
            Action::Compact => self.compact(state).await?,
        }
        Ok(())
    }

    fn start(&mut self, state: &mut State, request: RunRequest) {
        let mut run = self.agent.start(request.streaming(true));
        self.handle = Some(run.handle());
        state.begin("thinking");
        let tell = self.tell.clone();
        tokio::spawn(async move {
            while let Some(event) = run.next().await {
                // A closed receiver cancelled the run, which still runs to its end.
                let _ = tell.send(Told::Event(Box::new(event))).await;
            }
            let _ = tell.send(Told::Ended(run.await)).await;
        });
    }

    async fn list(&self, state: &mut State) -> Result<()> {
        let mut lines = Vec::new();
        for name in self.journal.sessions().await? {
            if let Some(info) = self.journal.info(&name).await? {
                let title = line(&store::title(&*self.journal, &name, &info).await?, 60);
                lines.push((info.updated, format!("{}  {name}  {title}", moment(info.updated))));
            }
        }
        lines.sort_by(|one, two| two.cmp(one));
        let lines: Vec<_> = lines.into_iter().take(20).map(|(_, line)| line).collect();
        state.note(&format!("{}\n\n/session NAME goes to one.", lines.join("\n")));
        Ok(())
    }

    async fn undo(&mut self, state: &mut State) -> Result<()> {
        let side = self.side(&self.session)?;
        let runs = side.runs().await?;
        let last = runs.iter().rev().find(|run| !run.undone);
        let last = last.ok_or_else(|| Error::config("there is nothing to take back"))?;
        side.undo(&last.run_id).await?;
        let said = last.first_message.clone();
        self.enter(state, Some(self.session.to_string())).await?;
        state.note("Taken back.");
        if let Some(said) = said {
            state.write(&said);
        }
        Ok(())
    }

    /// Has the model sum up the conversation, apart from the session.
    async fn compact(&mut self, state: &mut State) -> Result<()> {
        let history = self.side(&self.session)?.history().await?;
        if history.len() < 3 {
            return Err(Error::config("there is not enough to sum up"));
        }
        let scribe = self.agent.to_builder().without_tools().store(MemoryJournal::default()).build()?;
        let messages = history.iter().cloned().chain([Message::user(SUM_UP)]).collect();
        state.begin("summing up");
        let tell = self.tell.clone();
        tokio::spawn(async move {
            let summary = match scribe.start(RunRequest::new(messages)).await {
                Ok(RunEnd::Finished(finished)) => Ok(finished.answer),
                Ok(end) => Err(Error::config(format!("the summary was not finished: {}", end.as_str()))),
                Err(error) => Err(error),
            };
            let _ = tell.send(Told::Compacted(summary)).await;
        });
        Ok(())
    }

    async fn compacted(&mut self, state: &mut State, summary: Result<String>) -> Result<()> {
        let history =
            History::from_messages([Message::user(format!("What was said before, summed up:\n\n{}", summary?))])?;
        self.side(&self.session)?.replace(history, ReplaceReason::CompactManual).await?;
        self.enter(state, Some(self.session.to_string())).await?;
        state.note("The conversation was summed up; /undo takes that back.");
        Ok(())
    }
}

/// A name that sorts by time and is short enough to type.
fn new_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    moment(u64::try_from(now.as_millis()).unwrap_or_default()).replace([' ', ':'], "-")
}
