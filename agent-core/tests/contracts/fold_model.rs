//! Generated logs, and a naive fold of them.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    AssistantMessage, Block, Effect, ExitReason, History, Message, ModelResponse, RunIds, ToolMessage, ToolOutput,
    Usage,
    journal::{Entry, EntryBody, RunStatus, SessionIndex, SessionView},
};

/// A log under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(pub(crate) Vec<Entry>);

impl Log {
    pub(crate) fn add(&mut self, run: &str, body: EntryBody) {
        let seq = self.0.len() as u64 + 1;
        let mut entry = Entry::new(run.into(), 10 * seq, body);
        entry.seq = seq;
        self.0.push(entry);
    }

    pub(crate) fn run(&mut self, agent: &str, run: &str) {
        self.add(run, EntryBody::RunStarted { ids: ids(agent, run), fingerprint: String::new() });
    }

    pub(crate) fn resumed(&mut self, agent: &str, run: &str) {
        self.add(run, EntryBody::RunResumed { ids: ids(agent, run), attempt: String::new() });
    }

    pub(crate) fn heard(&mut self, run: &str, text: &str) {
        self.add(run, EntryBody::MessageAppended { message: Message::user(text) });
    }

    pub(crate) fn replaced(&mut self, run: &str, texts: &[String]) {
        let history = History::from_messages(texts.iter().map(Message::user)).expect("no calls");
        self.add(run, EntryBody::HistoryReplaced { reason: "user_clear".into(), before: 0, history });
    }

    pub(crate) fn undone(&mut self, run: &str, before_run: &str) {
        self.add(run, EntryBody::Undone { before_run: before_run.into() });
    }

    pub(crate) fn said(&mut self, run: &str, message: AssistantMessage, edited: Option<AssistantMessage>) {
        self.add(run, EntryBody::ModelFinished { step: 1, response: std::sync::Arc::new(ModelResponse::new(message)) });
        self.add(run, EntryBody::ModelAccepted { step: 1, message: edited, exit: None });
    }

    pub(crate) fn ended(&mut self, run: &str, usage: Usage) {
        self.add(run, EntryBody::RunEnded { status: done(), usage: usage.into(), error: None, answer: None });
    }

    pub(crate) fn fold(&self, agent: &str) -> SessionView {
        let mut index = SessionIndex::default();
        self.0.iter().for_each(|entry| index.apply(entry));
        index.view(agent)
    }

    /// The texts of the agent's history.
    pub(crate) fn texts(&self, agent: &str) -> Vec<String> {
        self.fold(agent).history.iter().map(Message::text).collect()
    }
}

fn ids(agent: &str, run: &str) -> Arc<RunIds> {
    let mut ids = RunIds::root(agent, "s");
    ids.run_id = run.into();
    Arc::new(ids)
}

pub(crate) fn done() -> RunStatus {
    RunStatus::Finished(ExitReason::Text)
}

pub(crate) fn asks(calls: usize) -> AssistantMessage {
    AssistantMessage::new((0..calls).map(|n| Block::tool_call(format!("c{n}"), "tool", "{}")).collect())
}

/// The next action of an agent.
#[derive(Clone, Debug)]
pub(crate) enum Doing {
    RunStarts,
    Heard,
    /// An answer without calls, possibly with another text than the model's.
    Answered {
        edited: bool,
    },
    Turn(Turn),
    Replaced {
        messages: usize,
    },
    /// Undo to before the run that began this many runs ago.
    Undone {
        ago: usize,
    },
    /// Ends with the usage of the run so far.
    RunEnds {
        tokens: u64,
    },
    RunResumes,
    /// Entries without an effect on the history.
    Noise,
}

#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) calls: Vec<Call>,
    /// True if the history was replaced while the tools ran.
    pub(crate) replaced: bool,
    /// False if the process died before all calls were answered.
    pub(crate) ended: bool,
}

/// The answers of a call: from the tool, from the hooks of the call, from the hooks of the turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) finished: bool,
    pub(crate) answered: bool,
    pub(crate) changed: bool,
}

/// One agent, which writes a log and keeps the expected result of its fold.
#[derive(Debug)]
pub(crate) struct Agent {
    name: &'static str,
    runs: usize,
    /// Messages added or set, with the run that did so.
    effects: Vec<(usize, Effects)>,
    /// An open turn.
    open: Option<Vec<Message>>,
    named: usize,
    /// The usage last reported by each run.
    usage: BTreeMap<usize, Usage>,
    pub(crate) ended: Option<RunStatus>,
}

#[derive(Debug)]
enum Effects {
    Adds(Vec<Message>),
    Sets(Vec<Message>),
}

impl Agent {
    pub(crate) fn new(name: &'static str) -> Self {
        let (effects, open, usage, ended) = Default::default();
        Self { name, runs: 0, effects, open, named: 0, usage, ended }
    }

    pub(crate) fn newest_run(&self) -> String {
        format!("{}-r{}", self.name, self.runs)
    }

    /// Usage of the agent's runs.
    pub(crate) fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.usage.values().for_each(|usage| sum += *usage);
        sum
    }

    /// Expected history of the agent.
    pub(crate) fn history(&self) -> Vec<Message> {
        let mut history = Vec::new();
        for (_, effect) in &self.effects {
            match effect {
                Effects::Adds(messages) => history.extend(messages.iter().cloned()),
                Effects::Sets(messages) => history.clone_from(messages),
            }
        }
        history.extend(self.open.iter().flatten().cloned());
        history
    }

    /// A text that is unique in the log.
    fn name(&mut self) -> String {
        self.named += 1;
        format!("{}-{}", self.name, self.named)
    }

    fn add(&mut self, messages: Vec<Message>) {
        self.effects.push((self.runs, Effects::Adds(messages)));
    }

    /// Closes an open turn before the next action.
    fn close(&mut self) {
        if let Some(turn) = self.open.take() {
            self.add(turn);
        }
    }

    pub(crate) fn act(&mut self, doing: &Doing, log: &mut Log) {
        if self.runs == 0 || matches!(doing, Doing::RunStarts) {
            self.close();
            self.runs += 1;
            self.ended = None;
            log.run(self.name, &self.newest_run());
        }
        let run = self.newest_run();
        match doing {
            Doing::RunStarts => {}
            Doing::Heard => {
                let text = self.name();
                log.heard(&run, &text);
                self.close();
                self.add(vec![Message::user(text)]);
            }
            Doing::Answered { edited } => {
                let (said, other) = (AssistantMessage::from(&*self.name()), AssistantMessage::from(&*self.name()));
                log.said(&run, said.clone(), edited.then(|| other.clone()));
                self.close();
                self.add(vec![Message::Assistant(if *edited { other } else { said })]);
            }
            Doing::Turn(turn) => self.turn(turn, &run, log),
            Doing::Replaced { messages } => self.replace(*messages, &run, log),
            Doing::Undone { ago } => {
                let target = self.runs.saturating_sub(*ago).max(1);
                log.undone(&run, &format!("{}-r{target}", self.name));
                self.effects.retain(|(run, _)| *run < target);
                self.open = None;
            }
            Doing::RunEnds { tokens } => {
                let usage = Usage::new(*tokens, 1);
                log.ended(&run, usage);
                self.usage.insert(self.runs, usage);
                self.ended = Some(done());
            }
            Doing::RunResumes => {
                log.resumed(self.name, &run);
                self.ended = None;
            }
            Doing::Noise => {
                log.add(&run, EntryBody::Decided { name: "n".into(), value: true.into(), beginning: false });
                log.add(&run, EntryBody::SideModelFinished { usage: Box::default() });
                log.add(&run, EntryBody::Unknown("new".into()));
            }
        }
    }

    fn replace(&mut self, messages: usize, run: &str, log: &mut Log) {
        let texts: Vec<_> = (0..messages).map(|_| self.name()).collect();
        log.replaced(run, &texts);
        self.effects.push((self.runs, Effects::Sets(texts.iter().map(Message::user).collect())));
    }

    fn turn(&mut self, turn: &Turn, run: &str, log: &mut Log) {
        self.close();
        let message = asks(turn.calls.len());
        log.said(run, message.clone(), None);
        let mut messages = vec![Message::Assistant(message)];
        let mut changed = BTreeMap::new();
        for (n, call) in turn.calls.iter().enumerate() {
            let (call_id, name): (Arc<str>, Arc<str>) = (format!("c{n}").into(), "tool".into());
            let answers =
                [call.finished, call.answered, call.changed && turn.ended].map(|given| given.then(|| self.name()));
            let [finished, answered, last] = answers.clone().map(|text| text.map(ToolOutput::text));
            let (effect, attempt) = (Effect::Pure, "a".into());
            log.add(run, EntryBody::ToolStarted { call_id: call_id.clone(), name: name.clone(), effect, attempt });
            if let Some(output) = finished {
                log.add(run, EntryBody::ToolFinished { call_id: call_id.clone(), output });
            }
            log.add(run, EntryBody::ToolAnswered { call_id: call_id.clone(), name, output: answered });
            changed.extend(last.map(|output| (call_id.clone(), output)));
            let answer = answers.into_iter().flatten().next_back();
            let is_error = answer.is_none();
            let text = answer.unwrap_or_else(|| "No result was recorded: the call was interrupted.".to_owned());
            messages.push(Message::Tool(ToolMessage::text(call_id, "tool", text, is_error)));
        }
        if turn.replaced {
            self.replace(1, run, log);
        }
        if turn.ended {
            log.add(run, EntryBody::TurnEnded { step: 1, changed, exit: None });
            self.add(messages);
        } else {
            self.open = Some(messages);
        }
    }
}
