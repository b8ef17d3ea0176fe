//! State of a chat's screen, and its changes by events and keys. Nothing here draws, waits or does I/O.

mod asking;
mod commands;
mod input;
mod items;
mod keys;

use agent::{
    EventKind, Message, Part, Question, Result, RunEnd, Usage, core::Chunk, event::Event, history::History, run::Answer,
};

pub(super) use self::{
    asking::Asking,
    commands::completions,
    input::Input,
    items::{Item, Items, Kind, Stage},
};
use crate::{cli::ThemeName, output::explained, saved_prompts::SavedPrompt};

/// Messages of an earlier conversation that are shown.
const SHOWN: usize = 200;

/// Actions of the user beyond the screen.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    Send(String),
    Steer(String),
    /// A file goes along with what is said next.
    Attach(String),
    Interrupt,
    Answer(Vec<(String, Answer)>),
    Resume,
    Model(String),
    /// Another session; a new one without a name.
    Session(Option<String>),
    Sessions,
    Undo,
    Fork(String),
    Compact,
    Quit,
}

/// Input mode.
#[derive(Debug, Default)]
pub(super) enum Mode {
    #[default]
    Write,
    /// Searching what was said: the query, and how many older ones were passed over.
    Search {
        query: String,
        skip: usize,
    },
    Ask(Box<Asking>),
}

pub(super) struct State {
    pub(super) items: Items,
    pub(super) input: Input,
    pub(super) mode: Mode,
    pub(super) session: String,
    pub(super) model: String,
    /// Tokens that the model can read.
    pub(super) window: Option<u64>,
    pub(super) usage: Usage,
    /// Tokens of the newest prompt.
    pub(super) prompt: u64,
    pub(super) theme: ThemeName,
    /// Rows that the end of the conversation is below the screen.
    pub(super) scroll: usize,
    /// Current activity of an active run.
    pub(super) doing: String,
    pub(super) is_running: bool,
    pub(super) is_changed: bool,
    /// Prompts that are commands.
    pub(super) prompts: Vec<SavedPrompt>,
    /// Earlier inputs, oldest first.
    said: Vec<String>,
    /// The one in the input, counted from the newest.
    recalled: Option<usize>,
}

impl State {
    pub(super) fn new(theme: ThemeName) -> Self {
        Self {
            items: Items::default(),
            input: Input::default(),
            mode: Mode::Write,
            session: String::new(),
            model: String::new(),
            window: None,
            usage: Usage::default(),
            prompt: 0,
            theme,
            scroll: 0,
            doing: String::new(),
            is_running: false,
            is_changed: true,
            prompts: Vec::new(),
            said: Vec::new(),
            recalled: None,
        }
    }

    // --- what the session says ---

    /// Shows another session.
    pub(super) fn enter(&mut self, session: String, model: (String, Option<u64>), history: &History, usage: Usage) {
        let (theme, said) = (self.theme, std::mem::take(&mut self.said));
        let (items, prompts) = (self.items.cleared(), std::mem::take(&mut self.prompts));
        *self = Self { items, session, usage, prompts, said, ..Self::new(theme) };
        self.model_is(model.0, model.1);
        if self.said.is_empty() {
            let is_user = |message: &&Message| matches!(message, Message::User(_));
            self.said = history.iter().filter(is_user).map(Message::text).collect();
        }
        let left_out = history.len().saturating_sub(SHOWN);
        if left_out > 0 {
            self.note(&format!("{left_out} older messages are not shown."));
        }
        for message in history.iter().skip(left_out) {
            self.items.message(message);
        }
    }

    pub(super) fn model_is(&mut self, model: String, window: Option<u64>) {
        (self.model, self.window) = (model, window);
    }

    /// A run begins.
    pub(super) fn begin(&mut self, doing: &str) {
        (self.is_running, self.doing, self.mode) = (true, doing.to_owned(), Mode::Write);
    }

    /// The run ended.
    pub(super) fn rest(&mut self) {
        self.is_running = false;
        self.doing.clear();
        self.items.settle();
    }

    /// A file goes along with what is said next.
    pub(super) fn attached(&mut self, name: &str, part: &Part) {
        self.note(&format!("{name} goes along with what you say next."));
        self.items.images("", std::slice::from_ref(part), 0);
    }

    pub(super) fn note(&mut self, text: &str) {
        self.items.push(Kind::Note, 0, text);
    }

    pub(super) fn problem(&mut self, text: &str) {
        self.items.push(Kind::Problem, 0, text);
    }

    /// Asks the user what a run waits for.
    pub(super) fn ask(&mut self, questions: Vec<Question>) {
        self.scroll = 0;
        self.mode = Mode::Ask(Box::new(Asking::new(questions)));
    }

    /// A run ended, or stopped for now.
    pub(super) fn ended(&mut self, end: Result<RunEnd>) {
        self.rest();
        match end {
            Ok(RunEnd::Interrupted(checkpoint)) => self.ask(checkpoint.questions),
            Ok(RunEnd::Cancelled(_) | RunEnd::Paused(_)) => {
                self.note("Interrupted. /resume goes on; or say something else.");
            }
            Ok(RunEnd::Finished(finished)) => {
                if !finished.answer.is_empty() && !self.items.ends_with_answer() {
                    self.items.push(Kind::Answer, 0, &finished.answer);
                }
            }
            Ok(_) => {}
            Err(error) => self.problem(&explained(&error)),
        }
    }

    /// Takes an event of a run.
    pub(super) fn apply(&mut self, event: &Event) {
        let (depth, run) = (event.ids.depth, &event.ids.run_id);
        match &event.kind {
            EventKind::StepStarted { .. } => "thinking".clone_into(&mut self.doing),
            EventKind::Chunk(chunk) if depth == 0 => match chunk {
                Chunk::Text { delta, .. } => self.items.stream(Kind::Answer, delta),
                Chunk::Reasoning { delta, .. } => self.items.stream(Kind::Thought, delta),
                Chunk::Restart => self.items.drop_stream(),
                _ => {}
            },
            EventKind::ModelAnswered { message, usage, .. } => {
                self.usage += *usage;
                if depth == 0 {
                    self.prompt = usage.prompt();
                    self.items.answered(&message.text());
                } else {
                    self.items.said(run, depth, &message.text());
                }
                for call in message.calls() {
                    self.items.call(run, &call.id, &call.name, &call.arguments, depth);
                }
            }
            EventKind::ToolStarted { call_id, name } => {
                name.as_ref().clone_into(&mut self.doing);
                self.items.stage(run, call_id, Stage::Runs);
            }
            EventKind::ToolProgress { call_id, progress } => {
                let text = progress.as_str().map_or_else(|| progress.to_string(), str::to_owned);
                self.items.output(run, call_id, &text, false);
            }
            EventKind::ToolAnswered { call_id, output, .. } => {
                self.items.output(run, call_id, &output.to_text(), true);
                self.items.stage(run, call_id, if output.is_error() { Stage::Failed } else { Stage::Done });
                self.items.images(run, output.content(), depth);
            }
            EventKind::SubAgentStarted { key, run: below, .. } => self.items.agent(run, below, key, depth),
            EventKind::Retry { attempt, delay, error, .. } => {
                self.note(&format!("Try {attempt} in {delay:.1} s: {error}"));
            }
            EventKind::Failover { from, to, error, .. } => self.note(&format!("{to} in the place of {from}: {error}")),
            EventKind::Warning { message } => self.note(message),
            EventKind::HistoryReplaced { reason, before, after } if depth == 0 && reason != "resumed" => {
                self.note(&format!("The conversation was replaced ({reason}): {before} messages, now {after}."));
            }
            _ => {}
        }
        self.is_changed = true;
    }

    // --- what the user said ---

    /// Puts a text into the input.
    pub(super) fn write(&mut self, text: &str) {
        self.input = Input::of(text);
    }

    /// Result of the search: the newest input that contains the query, after the skipped ones.
    pub(super) fn found(&self) -> Option<&str> {
        let Mode::Search { query, skip } = &self.mode else { return None };
        let query = query.to_lowercase();
        let fits = |said: &&String| said.to_lowercase().contains(&query);
        self.said.iter().rev().filter(fits).nth(*skip).map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
