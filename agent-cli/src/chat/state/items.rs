//! Items on the screen: messages and calls. Their number is bounded.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, VecDeque},
};

use agent::{Block, Message, Part};

use crate::chat::picture::Picture;

/// Things that are kept at most.
const MOST_ITEMS: usize = 2_000;
/// Bytes of all of them at most.
const MOST_BYTES: usize = 8 << 20;
/// Bytes at the beginning and at the end of one text that are kept; what is between them is counted.
const END_BYTES: usize = 64 << 10;

/// Kind of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chat) enum Kind {
    User,
    Answer,
    Thought,
    Tool { name: String, arguments: String, stage: Stage },
    Agent,
    Image(Picture),
    Note,
    Problem,
}

/// State of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::chat) enum Stage {
    Waits,
    Runs,
    Done,
    Failed,
}

/// Something on the screen.
#[derive(Debug)]
pub(in crate::chat) struct Item {
    /// Never given twice.
    pub(in crate::chat) id: u64,
    /// Grows with each change, so that a picture of it can be kept.
    pub(in crate::chat) version: u64,
    pub(in crate::chat) kind: Kind,
    pub(in crate::chat) text: Kept,
    /// Depth below the top-level agent.
    pub(in crate::chat) depth: u32,
    pub(in crate::chat) is_unfolded: bool,
    /// More of it may come.
    is_streaming: bool,
    /// Of a call: whose it is.
    call: Option<(String, String)>,
    /// The sub-agent in which it is, by the id of what stands for that.
    within: Option<u64>,
}

impl Item {
    /// True if its text is only shown where the user wants to see it.
    pub(in crate::chat) fn is_foldable(&self) -> bool {
        matches!(self.kind, Kind::Tool { .. } | Kind::Thought | Kind::Agent)
    }
}

#[derive(Debug, Default)]
pub(in crate::chat) struct Items {
    all: VecDeque<Item>,
    /// Items of sub-agents, by their runs.
    agents: HashMap<String, u64>,
    next: u64,
    /// The one that folding is about.
    pub(in crate::chat) focus: Option<u64>,
    /// The user looks for it: it is to be on the screen.
    pub(in crate::chat) is_sought: bool,
}

impl Items {
    /// Visible items: all except those of folded sub-agents.
    pub(in crate::chat) fn shown(&self) -> impl DoubleEndedIterator<Item = &Item> {
        let mut folded = HashSet::new();
        for item in &self.all {
            let is_hidden = item.within.is_some_and(|above| folded.contains(&above));
            if is_hidden || (item.kind == Kind::Agent && !item.is_unfolded) {
                folded.insert(item.id);
            }
        }
        self.all.iter().filter(move |item| item.within.is_none_or(|above| !folded.contains(&above)))
    }

    /// Nothing; ids go on, since none is given twice.
    pub(super) fn cleared(&self) -> Self {
        Self { next: self.next, ..Self::default() }
    }

    /// Adds something; what is the oldest goes if it is too much.
    pub(in crate::chat) fn push(&mut self, kind: Kind, depth: u32, text: &str) {
        self.all.iter_mut().for_each(|item| item.is_streaming = false);
        self.next += 1;
        let is_unfolded = kind == Kind::Agent;
        let item = Item {
            id: self.next,
            version: 0,
            kind,
            text: Kept::of(text),
            depth,
            is_unfolded,
            is_streaming: false,
            call: None,
            within: None,
        };
        self.all.push_back(item);
        self.bound();
    }

    /// As [`push`](Self::push), of a run: what a sub-agent's is, is in it.
    fn push_of(&mut self, run: &str, kind: Kind, depth: u32, text: &str) {
        self.push(kind, depth, text);
        if let Some(item) = self.all.back_mut() {
            item.within = self.agents.get(run).copied();
        }
    }

    /// A run starts a sub-agent, whose run is `below`.
    pub(super) fn agent(&mut self, run: &str, below: &str, key: &str, depth: u32) {
        self.push_of(run, Kind::Agent, depth, key);
        self.agents.insert(below.to_owned(), self.next);
    }

    /// Text of a sub-agent.
    pub(super) fn said(&mut self, run: &str, depth: u32, text: &str) {
        if !text.is_empty() {
            self.push_of(run, Kind::Answer, depth, text);
        }
    }

    fn bound(&mut self) {
        let mut bytes: usize = self.all.iter().map(|item| item.text.bytes()).sum();
        while self.all.len() > 1 && (self.all.len() > MOST_ITEMS || bytes > MOST_BYTES) {
            bytes -= self.all.pop_front().map_or(0, |item| item.text.bytes());
        }
    }

    /// Shows a message of an earlier run.
    pub(super) fn message(&mut self, message: &Message) {
        match message {
            Message::User(said) => {
                self.push(Kind::User, 0, &message.text());
                self.images("", said.parts(), 0);
            }
            Message::System(_) => self.push(Kind::Note, 0, &message.text()),
            Message::Assistant(said) => {
                for block in said.blocks() {
                    match block {
                        Block::Text(text) => self.push(Kind::Answer, 0, &text.text),
                        Block::Reasoning(thought) if !thought.text.is_empty() => {
                            self.push(Kind::Thought, 0, &thought.text);
                        }
                        Block::ToolCall(call) => self.call("", &call.id, &call.name, &call.arguments, 0),
                        _ => {}
                    }
                }
            }
            Message::Tool(result) => {
                self.output("", result.call_id(), &message.text(), true);
                self.stage("", result.call_id(), if result.is_error() { Stage::Failed } else { Stage::Done });
                self.images("", result.parts(), 0);
            }
        }
    }

    /// Adds a piece to what is being said.
    pub(super) fn stream(&mut self, kind: Kind, delta: &str) {
        match self.all.back_mut() {
            Some(item) if item.is_streaming && item.kind == kind => {
                item.text.push(delta);
                item.version += 1;
            }
            _ if delta.is_empty() => {}
            _ => {
                self.push(kind, 0, delta);
                if let Some(item) = self.all.back_mut() {
                    item.is_streaming = true;
                }
            }
        }
    }

    /// The answer was interrupted.
    pub(super) fn drop_stream(&mut self) {
        while self.all.back().is_some_and(|item| item.is_streaming) {
            self.all.pop_back();
        }
    }

    /// A complete answer replaces its chunks.
    pub(super) fn answered(&mut self, text: &str) {
        match self.all.back_mut() {
            Some(item) if item.is_streaming && item.kind == Kind::Answer => {
                (item.text, item.is_streaming) = (Kept::of(text), false);
                item.version += 1;
            }
            _ if text.is_empty() => {}
            _ => self.push(Kind::Answer, 0, text),
        }
    }

    pub(super) fn call(&mut self, run: &str, id: &str, name: &str, arguments: &str, depth: u32) {
        let arguments = Kept::of(arguments).text().into_owned();
        self.push_of(run, Kind::Tool { name: name.to_owned(), arguments, stage: Stage::Waits }, depth, "");
        if let Some(item) = self.all.back_mut() {
            item.call = Some((run.to_owned(), id.to_owned()));
        }
    }

    /// Shows the images among the parts of a message.
    pub(super) fn images(&mut self, run: &str, parts: &[Part], depth: u32) {
        for picture in Picture::all(parts) {
            self.push_of(run, Kind::Image(picture), depth, "");
        }
    }

    fn of_call(&mut self, run: &str, id: &str) -> Option<&mut Item> {
        let is_it = |item: &&mut Item| item.call.as_ref().is_some_and(|call| call.0 == run && call.1 == id);
        self.all.iter_mut().rev().find(is_it)
    }

    pub(super) fn stage(&mut self, run: &str, id: &str, now: Stage) {
        if let Some(item) = self.of_call(run, id)
            && let Kind::Tool { stage, .. } = &mut item.kind
        {
            *stage = now;
            item.version += 1;
        }
    }

    /// Output of a call: a chunk, or all of it.
    pub(super) fn output(&mut self, run: &str, id: &str, text: &str, is_whole: bool) {
        if let Some(item) = self.of_call(run, id) {
            if is_whole {
                item.text = Kept::of(text);
            } else {
                item.text.push(text);
                item.text.push("\n");
            }
            item.version += 1;
        }
        self.bound();
    }

    /// Nothing more comes.
    pub(super) fn settle(&mut self) {
        for item in &mut self.all {
            item.is_streaming = false;
            if let Kind::Tool { stage: stage @ Stage::Runs, .. } = &mut item.kind {
                *stage = Stage::Waits;
                item.version += 1;
            }
        }
    }

    pub(super) fn ends_with_answer(&self) -> bool {
        self.all.back().is_some_and(|item| item.kind == Kind::Answer && item.depth == 0)
    }

    /// Folds what the focus is on, or unfolds it; without a focus, the newest.
    pub(in crate::chat) fn fold(&mut self) {
        let focus = self.focus.or_else(|| self.shown().rev().find(|item| item.is_foldable()).map(|item| item.id));
        if let Some(item) = self.all.iter_mut().find(|item| Some(item.id) == focus) {
            item.is_unfolded = !item.is_unfolded;
            item.version += 1;
            self.is_sought = true;
        }
    }

    /// Moves the focus to the one before, or after.
    pub(super) fn move_focus(&mut self, back: bool) {
        let foldable: Vec<_> = self.shown().filter(|item| item.is_foldable()).map(|item| item.id).collect();
        let at = self.focus.and_then(|focus| foldable.iter().position(|id| *id == focus));
        let next = match (at, back) {
            (None, _) => foldable.len().checked_sub(1),
            (Some(at), true) => Some(at.saturating_sub(1)),
            (Some(at), false) => Some(at + 1),
        };
        self.focus = next.and_then(|next| foldable.get(next)).copied();
        self.is_sought = true;
    }
}

/// The beginning and the end of a text, which may be of any length.
#[derive(Debug, Default)]
pub(in crate::chat) struct Kept {
    head: String,
    tail: String,
    /// Bytes between them.
    dropped: usize,
}

impl Kept {
    pub(in crate::chat) fn of(text: &str) -> Self {
        let mut kept = Self::default();
        kept.push(text);
        kept
    }

    pub(in crate::chat) fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() && self.dropped == 0 {
            let room = floor(text, END_BYTES.saturating_sub(self.head.len()));
            self.head.push_str(&text[..room]);
            text = &text[room..];
        }
        // Only the end of what is much longer than what is kept has to be copied.
        let from = ceil(text, text.len().saturating_sub(2 * END_BYTES));
        if from > 0 {
            self.dropped += self.tail.len() + from;
            self.tail.clear();
        }
        self.tail.push_str(&text[from..]);
        if self.tail.len() > 2 * END_BYTES {
            let cut = ceil(&self.tail, self.tail.len() - END_BYTES);
            self.dropped += cut;
            self.tail.drain(..cut);
        }
    }

    pub(in crate::chat) fn bytes(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub(in crate::chat) fn text(&self) -> Cow<'_, str> {
        match (self.tail.is_empty(), self.dropped) {
            (true, 0) => Cow::Borrowed(&self.head),
            (_, 0) => Cow::Owned(format!("{}{}", self.head, self.tail)),
            (_, dropped) => Cow::Owned(format!("{}\n… {dropped} bytes are not shown …\n{}", self.head, self.tail)),
        }
    }
}

/// The last boundary of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first boundary of a character at or after `at`.
fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}
