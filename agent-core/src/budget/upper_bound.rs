//! Upper-bound estimate of prompt tokens, for budgets without a counter.

use std::sync::LazyLock;

use crate::{
    history::History,
    llm::Costs,
    message::{Message, SystemMessage},
    tooling::{ToolSpecs, WireKey},
};

/// Overhead of a message, a call, a result or a tool.
const AROUND: u64 = 12;
/// An image, or a page of a document, including its overhead.
const MEDIA: u64 = 3_000;
/// Hidden reasoning costs as much as text.
const COSTS: Costs = Costs {
    message: AROUND,
    call: AROUND,
    result: AROUND,
    tool: AROUND,
    image: MEDIA,
    document: MEDIA,
    hidden: |base64| base64.div_ceil(2),
};
/// Key of the cached token count of tools.
static KEY: LazyLock<WireKey> = LazyLock::new(|| WireKey::new(&"agent_core::budget::UpperBound"));

/// Upper-bound token estimator: one token per two bytes, and a large constant for an image or a
/// document.
///
/// It runs before every call, so its cost must not grow with the conversation: it counts only the
/// messages added since the last call.
#[derive(Default)]
pub(crate) struct UpperBound {
    counted: History,
    tokens: u64,
}

impl UpperBound {
    /// Returns the tokens of one message.
    pub(crate) fn message(message: &Message) -> u64 {
        self::message(message)
    }

    /// Returns the tokens of the whole prompt.
    pub(crate) fn prompt(&mut self, system: Option<&SystemMessage>, tools: &ToolSpecs, messages: &History) -> u64 {
        self.tokens = match messages.since(&self.counted) {
            Some(new) => self.tokens + new.map(message).sum::<u64>(),
            None => messages.iter().map(message).sum(),
        };
        self.counted = messages.clone();
        let system = system.map_or(0, |system| message(&Message::System(system.clone())));
        system + tools.total(*KEY, |specs| COSTS.tools(specs, text)) + self.tokens
    }
}

fn text(text: &str) -> u64 {
    (text.len() as u64).div_ceil(2)
}

fn message(message: &Message) -> u64 {
    COSTS.message(message, text, |_, kind| COSTS.media(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_prompt_that_goes_on_only_what_is_new_is_counted() {
        let mut count = UpperBound::default();
        let mut history = History::default();
        for n in 0..100 {
            history.push(Message::user("four")).expect("a user may speak");
            assert_eq!(count.prompt(None, &ToolSpecs::default(), &history), (AROUND + 2) * (n + 1));
            assert_eq!(count.prompt(None, &ToolSpecs::default(), &history), (AROUND + 2) * (n + 1));
        }
        count.tokens = 0; // the counted messages are not counted again
        history.push(Message::user("four")).expect("a user may speak");
        assert_eq!(count.prompt(None, &ToolSpecs::default(), &history), AROUND + 2);
        let another = history.iter().take(3).cloned();
        let another = History::from_messages(another).expect("no calls");
        assert_eq!(count.prompt(None, &ToolSpecs::default(), &another), (AROUND + 2) * 3, "another conversation");
    }
}
