//! Streamed answer of a model.

use std::sync::Arc;

use agent::{AssistantMessage, Block, message::Reasoning, model::Chunk};

use super::{What, ids::Ids};

/// Streamed answer of a model.
#[derive(Debug)]
pub(super) struct Answer {
    /// Current message id, and the part that stays the same after a retraction.
    id: String,
    name: String,
    lane: Option<Arc<str>>,
    text: Option<Text>,
    thoughts: Vec<Thought>,
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Text {
    /// Source blocks; each one after the first begins on a new line.
    blocks: Vec<u32>,
    said: String,
}

#[derive(Debug)]
struct Thought {
    index: u32,
    id: String,
    is_open: bool,
    is_sealed: bool,
}

#[derive(Debug)]
struct Call {
    index: u32,
    own: Arc<str>,
    name: Arc<str>,
    id: String,
    is_open: bool,
    arguments: String,
}

impl Answer {
    pub(super) fn new(name: String, lane: Option<Arc<str>>, ids: &mut Ids) -> Self {
        Self { id: ids.fresh(&name), name, lane, text: None, thoughts: Vec::new(), calls: Vec::new() }
    }

    pub(super) fn into_id(self) -> String {
        self.id
    }

    /// Applies a chunk.
    pub(super) fn chunk(&mut self, chunk: &Chunk, ids: &mut Ids, say: &mut impl FnMut(What)) {
        match chunk {
            Chunk::Text { index, delta } => self.say_text(*index, delta, say),
            Chunk::Reasoning { index, delta } => self.think(*index, delta, say),
            Chunk::ToolCall { index, id, name } => self.begin_call(*index, id, name, ids, say),
            Chunk::Arguments { index, delta } => self.add_arguments(*index, delta, say),
            Chunk::Block { index, block } => self.block(*index, block, ids, say),
            Chunk::End { index } => {
                self.end_thoughts(|thought| thought.index == *index, say);
                self.end_calls(|call| call.index == *index, say);
            }
            Chunk::Restart => self.retract(ids, say),
            _ => {}
        }
    }

    /// Applies the complete message: continues the streamed content where it is a prefix of the
    /// message, and retracts it otherwise.
    pub(super) fn complete(&mut self, message: &AssistantMessage, ids: &mut Ids, say: &mut impl FnMut(What)) {
        if !self.agrees(message) {
            self.retract(ids, say);
        }
        if self.is_untold() {
            for (index, block) in (0..).zip(message.blocks()) {
                self.block(index, block, ids, say);
                self.end_thoughts(|_| true, say);
                self.end_calls(|_| true, say);
            }
        } else {
            self.add_missing(message, ids, say);
        }
        self.close(say);
    }

    /// Ends a call, which has its result.
    pub(super) fn end_call(&mut self, call: &str, say: &mut impl FnMut(What)) {
        self.end_calls(|one| one.id == call, say);
    }

    /// Ends all open items.
    pub(super) fn close(&mut self, say: &mut impl FnMut(What)) {
        self.end_thoughts(|_| true, say);
        self.end_calls(|_| true, say);
        if self.text.take().is_some() {
            say(What::TextEnded { message: self.id.clone() });
        }
    }

    /// Ends all open items and retracts the whole answer. Further content gets a new message id.
    pub(super) fn retract(&mut self, ids: &mut Ids, say: &mut impl FnMut(What)) {
        if self.is_untold() {
            return;
        }
        self.close(say);
        let thoughts = std::mem::take(&mut self.thoughts).into_iter().map(|thought| thought.id);
        let messages = thoughts.chain([self.id.clone()]).collect();
        let calls = std::mem::take(&mut self.calls).into_iter().map(|call| call.id).collect();
        say(What::Retracted { messages, calls });
        self.id = ids.fresh(&self.name);
    }

    fn is_untold(&self) -> bool {
        self.text.is_none() && self.thoughts.is_empty() && self.calls.is_empty()
    }

    /// True if the streamed content is a prefix of the message.
    fn agrees(&self, message: &AssistantMessage) -> bool {
        let mut calls = message.calls();
        let same = |call: &Call| {
            calls.next().is_some_and(|said| {
                let rest = said.arguments.strip_prefix(&*call.arguments);
                said.id == call.own
                    && said.name == call.name
                    && rest.is_some_and(|rest| rest.is_empty() || call.is_open)
            })
        };
        self.calls.iter().all(same) && self.text.as_ref().is_none_or(|text| message.text().starts_with(&text.said))
    }

    /// Emits the parts of the message that were not streamed.
    fn add_missing(&mut self, message: &AssistantMessage, ids: &mut Ids, say: &mut impl FnMut(What)) {
        let text = message.text();
        let told = self.text.as_ref().map_or(0, |text| text.said.len());
        if told < text.len() {
            let index = self.text.as_ref().and_then(|text| text.blocks.last().copied()).unwrap_or_default();
            self.say_text(index, &text[told..], say);
        }
        let thoughts = message.blocks().iter().filter_map(|block| match block {
            Block::Reasoning(reasoning) => Some(reasoning),
            _ => None,
        });
        for (at, reasoning) in thoughts.enumerate().take(self.thoughts.len()) {
            self.seal(at, reasoning, say);
        }
        for (at, call) in message.calls().enumerate() {
            match self.calls.get(at) {
                Some(told) => {
                    let (index, rest) = (told.index, call.arguments[told.arguments.len()..].to_owned());
                    self.add_arguments(index, &rest, say);
                }
                None => self.block(u32::MAX, &Block::ToolCall(call.clone()), ids, say),
            }
            self.end_calls(|_| true, say);
        }
    }

    /// Applies a complete block, or the final form of a streamed one.
    fn block(&mut self, index: u32, block: &Block, ids: &mut Ids, say: &mut impl FnMut(What)) {
        match block {
            Block::Text(text) if self.text.as_ref().is_none_or(|told| !told.blocks.contains(&index)) => {
                self.say_text(index, &text.text, say);
            }
            Block::Reasoning(reasoning) => {
                let at = self.thoughts.iter().rposition(|thought| thought.index == index);
                let at = at.unwrap_or_else(|| {
                    self.think(index, &reasoning.text, say);
                    self.begin_thought(index, say)
                });
                self.seal(at, reasoning, say);
            }
            Block::ToolCall(call) if !self.calls.iter().any(|told| told.index == index && told.own == call.id) => {
                self.begin_call(index, &call.id, &call.name, ids, say);
                self.add_arguments(index, &call.arguments, say);
            }
            _ => {}
        }
    }

    fn say_text(&mut self, index: u32, delta: &str, say: &mut impl FnMut(What)) {
        if delta.is_empty() {
            return;
        }
        let message = self.id.clone();
        let text = match &mut self.text {
            Some(text) => text,
            None => {
                say(What::TextStarted { message: message.clone() });
                self.text.insert(Text { blocks: Vec::new(), said: String::new() })
            }
        };
        let mut delta = delta.to_owned();
        if !text.blocks.contains(&index) {
            text.blocks.push(index);
            if !text.said.is_empty() {
                delta.insert(0, '\n');
            }
        }
        text.said.push_str(&delta);
        say(What::Text { message, delta });
    }

    fn think(&mut self, index: u32, delta: &str, say: &mut impl FnMut(What)) {
        if delta.is_empty() {
            return;
        }
        let at = self.begin_thought(index, say);
        say(What::Thought { thought: self.thoughts[at].id.clone(), delta: delta.to_owned() });
    }

    /// Returns the open thought of this block, or begins a new one.
    fn begin_thought(&mut self, index: u32, say: &mut impl FnMut(What)) -> usize {
        let open = self.thoughts.iter().rposition(|thought| thought.index == index && thought.is_open);
        open.unwrap_or_else(|| {
            let id = format!("{}-thought-{}", self.id, self.thoughts.len() + 1);
            say(What::ThoughtStarted { thought: id.clone() });
            self.thoughts.push(Thought { index, id, is_open: true, is_sealed: false });
            self.thoughts.len() - 1
        })
    }

    fn seal(&mut self, at: usize, reasoning: &Reasoning, say: &mut impl FnMut(What)) {
        let thought = &mut self.thoughts[at];
        let sealed = reasoning.encrypted.as_ref().or(reasoning.signature.as_ref());
        if let Some(sealed) = sealed.filter(|_| !thought.is_sealed) {
            thought.is_sealed = true;
            say(What::ThoughtSealed { thought: thought.id.clone(), sealed: sealed.clone() });
        }
    }

    fn end_thoughts(&mut self, which: impl Fn(&Thought) -> bool, say: &mut impl FnMut(What)) {
        for thought in self.thoughts.iter_mut().filter(|thought| thought.is_open && which(thought)) {
            thought.is_open = false;
            say(What::ThoughtEnded { thought: thought.id.clone() });
        }
    }

    fn begin_call(&mut self, index: u32, own: &Arc<str>, name: &Arc<str>, ids: &mut Ids, say: &mut impl FnMut(What)) {
        let id = ids.begin_call(self.lane.as_deref(), own);
        say(What::CallStarted { call: id.clone(), name: name.clone(), message: self.id.clone() });
        self.calls.push(Call {
            index,
            own: own.clone(),
            name: name.clone(),
            id,
            is_open: true,
            arguments: String::new(),
        });
    }

    fn add_arguments(&mut self, index: u32, delta: &str, say: &mut impl FnMut(What)) {
        let open = self.calls.iter_mut().rev().find(|call| call.index == index && call.is_open);
        if let Some(call) = open.filter(|_| !delta.is_empty()) {
            call.arguments.push_str(delta);
            say(What::Arguments { call: call.id.clone(), delta: delta.to_owned() });
        }
    }

    fn end_calls(&mut self, which: impl Fn(&Call) -> bool, say: &mut impl FnMut(What)) {
        for call in self.calls.iter_mut().filter(|call| call.is_open && which(call)) {
            call.is_open = false;
            say(What::CallEnded { call: call.id.clone() });
        }
    }
}
