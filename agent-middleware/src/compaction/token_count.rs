//! Incremental token count of a growing conversation.

use std::sync::Arc;

use agent_core::{History, Message, ModelRequest, SystemMessage, TokenCounter, ToolSpecs, Usage, model::Correction};

/// Growth factor of a conversation after which an unsuccessful compaction is retried.
const GROWTH: f64 = 1.05;

/// Token count of a run's conversation. A step counts only its new messages, however long the
/// conversation is.
#[derive(Debug, Default)]
pub(super) struct TokenCount {
    /// The history that `messages` counts.
    counted: History,
    messages: u64,
    around: Option<Around>,
    /// Estimate of the current prompt.
    asked: u64,
    /// Correction of estimates.
    correction: Correction,
    /// The last prompt with a usage report: its estimate and its actual size. Later prompts extend
    /// it.
    last: Option<(u64, u64)>,
    /// The uncorrected estimate at which a compaction was unsuccessful; later corrections do not
    /// change it.
    declined: Option<u64>,
    /// Replacement of a refused prompt, for attempts that still hold the old one.
    replaced: Option<Replaced>,
    /// The step in which a prompt was refused: only once per step.
    refused: Option<u32>,
    /// Set once the run was warned that the trigger cannot be met.
    is_warned: bool,
}

/// Count of the system prompt and the tools, which rarely change.
#[derive(Debug)]
struct Around {
    system: Option<SystemMessage>,
    tools: ToolSpecs,
    tokens: u64,
}

#[derive(Clone, Debug)]
struct Replaced {
    from: History,
    to: Arc<History>,
}

/// Tokens of a prompt, corrected by the provider's usage reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) messages: u64,
    pub(super) around: u64,
    pub(super) factor: f64,
}

impl Size {
    pub(super) fn prompt(&self) -> u64 {
        self.messages + self.around
    }
}

fn sum<'a>(counter: &dyn TokenCounter, messages: impl Iterator<Item = &'a Message>) -> u64 {
    messages.map(|message| counter.message(message)).sum()
}

impl TokenCount {
    /// Counts the prompt of `req`, whose conversation is `kept`, possibly with additions for this
    /// call.
    pub(super) fn measure(&mut self, counter: &dyn TokenCounter, req: &ModelRequest, kept: &History) -> Size {
        self.messages = match kept.since(&self.counted) {
            Some(new) => self.messages + sum(counter, new),
            None => sum(counter, kept.iter()),
        };
        self.counted = kept.clone();
        let added = req.messages.since(kept).map_or(0, |added| sum(counter, added));
        let (messages, around) = (self.messages + added, self.around(counter, req));
        self.asked = messages + around;
        let right = self.correction;
        let hidden = self.last.map_or(0.0, |(asked, had)| had as f64 - asked as f64 * right.factor());
        let around = (around as f64 * right.factor() + hidden).max(0.0).round() as u64;
        Size { messages: right.part(messages), around, factor: right.factor() }
    }

    fn around(&mut self, counter: &dyn TokenCounter, req: &ModelRequest) -> u64 {
        let place = |system: &Option<SystemMessage>| system.as_ref().map(|system| system.parts().as_ptr());
        let same = |known: &&Around| {
            place(&known.system) == place(&req.system)
                && std::ptr::eq(known.tools.as_ptr(), req.tools.as_ptr())
                && known.tools.len() == req.tools.len()
        };
        if let Some(known) = self.around.as_ref().filter(same) {
            return known.tokens;
        }
        let system = req.system.clone().map_or(0, |system| counter.message(&Message::System(system)));
        let tokens = system + counter.tools(&req.tools);
        self.around = Some(Around { system: req.system.clone(), tools: req.tools.clone(), tokens });
        tokens
    }

    /// Learns from the prompt size that the provider reports.
    pub(super) fn learn(&mut self, used: &Usage) {
        self.correction.learn(self.asked, used);
        if used.calls == 1 && used.prompt() > 0 {
            self.last = Some((self.asked, used.prompt()));
        }
    }

    /// True if a compaction was unsuccessful and the conversation has hardly grown since.
    pub(super) fn is_declined(&self) -> bool {
        self.declined.is_some_and(|at| (self.asked as f64) < at as f64 * GROWTH)
    }

    /// Records whether a compaction of the last count was unsuccessful.
    pub(super) fn decline(&mut self, nothing: bool) {
        self.declined = nothing.then_some(self.asked);
    }

    /// Records that the provider refused the prompt of this step; returns false if it had done so
    /// before.
    pub(super) fn refuse(&mut self, step: u32) -> bool {
        self.refused.replace(step) != Some(step)
    }

    /// Records the replacement of a refused conversation.
    pub(super) fn replace(&mut self, from: History, to: History) {
        self.replaced = Some(Replaced { from, to: Arc::new(to) });
    }

    /// Returns the replacement of an attempt's conversation, if that was refused.
    pub(super) fn replacement(&self, of: &History) -> Option<Arc<History>> {
        self.replaced.as_ref().filter(|replaced| of.continues(&replaced.from)).map(|replaced| replaced.to.clone())
    }

    /// Resets the state of the previous call.
    pub(super) fn begin(&mut self) {
        (self.replaced, self.refused) = (None, None);
    }

    /// Returns true the first time.
    pub(super) fn warn(&mut self) -> bool {
        !std::mem::replace(&mut self.is_warned, true)
    }
}
