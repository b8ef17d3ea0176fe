//! Token counter that counts each message once.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{
    Block, History, Media, Message, Part, TokenCounter, ToolSpecs, message::MediaSource, model::MediaKind,
};

use super::kept::{Address, Alive, Kept};

/// Size of text that may be kept alive, in bytes.
const LIMIT: usize = 8 << 20;
/// Size of base64 data above which a message is not kept: counting an image is cheap, and keeping
/// it is not.
const MEDIA: usize = 64 << 10;

/// Token counter that counts each message once: the cost for a long history is that of its new
/// messages.
///
/// Counts are keyed by the memory address of a message's content, which clones of the message
/// share, in every history that holds it. To prevent reuse of the address, the counter keeps the
/// message alive; it evicts the least recently used ones when more than the
/// [limit](Self::with_limit) is kept.
///
/// ```
/// use agent_core::{History, Message, TokenCounter};
/// use agent_llm::tokens::{ApproximateCounter, IncrementalCounter};
///
/// let counter = IncrementalCounter::new(ApproximateCounter);
/// let mut history = History::default();
/// history.push(Message::user("a question of 28 characters"))?;
/// let before = counter.history(&history);
/// history.push(Message::assistant("yes"))?;
/// assert_eq!(counter.history(&history), before + 4, "only the answer was counted");
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct IncrementalCounter {
    counter: Arc<dyn TokenCounter>,
    kept: Mutex<Kept>,
}

impl IncrementalCounter {
    /// Caches the counts of `counter`.
    pub fn new(counter: impl TokenCounter) -> Self {
        Self::shared(Arc::new(counter))
    }

    /// Caches the counts of a shared counter.
    pub fn shared(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, kept: Mutex::new(Kept::new(LIMIT)) }
    }

    /// Sets the approximate size of text that may be kept alive, in bytes. A longer history is
    /// counted anew each time. Default: 8 MiB, some two million tokens, most of which running
    /// agents hold anyway.
    #[must_use]
    pub fn with_limit(self, bytes: usize) -> Self {
        Self { kept: Mutex::new(Kept::new(bytes)), ..self }
    }

    fn count(&self, message: &Message) -> u64 {
        let tokens = self.counter.message(message);
        if media(message) <= MEDIA {
            self.kept().put(address(message), tokens, Alive::Message(message.clone()));
        }
        tokens
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenCounter for IncrementalCounter {
    fn text(&self, text: &str) -> u64 {
        self.counter.text(text)
    }

    fn media(&self, media: &Media, kind: MediaKind) -> u64 {
        self.counter.media(media, kind)
    }

    fn message(&self, message: &Message) -> u64 {
        let known = self.kept().get(address(message));
        known.unwrap_or_else(|| self.count(message))
    }

    fn tools(&self, tools: &ToolSpecs) -> u64 {
        let place = place(tools);
        let known = self.kept().get(place);
        known.unwrap_or_else(|| {
            let tokens = self.counter.tools(tools);
            self.kept().put(place, tokens, Alive::Tools(tools.clone()));
            tokens
        })
    }

    fn history(&self, history: &History) -> u64 {
        let mut sum = 0;
        let mut new = Vec::new();
        let mut kept = self.kept();
        for message in history.iter() {
            match kept.get(address(message)) {
                Some(tokens) => sum += tokens,
                None => new.push(message),
            }
        }
        drop(kept); // releases the lock while the new messages are counted
        sum + new.into_iter().map(|message| self.count(message)).sum::<u64>()
    }
}

impl fmt::Debug for IncrementalCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept();
        f.debug_struct("IncrementalCounter").field("kept", &kept.len()).finish_non_exhaustive()
    }
}

fn address(message: &Message) -> Address {
    match message {
        Message::System(m) => place(m.parts()),
        Message::User(m) => place(m.parts()),
        Message::Assistant(m) => place(m.blocks()),
        Message::Tool(m) => place(m.parts()),
    }
}

fn place<T>(content: &[T]) -> Address {
    (!content.is_empty()).then(|| content.as_ptr().addr())
}

/// Returns the size of inline images and documents, in bytes.
fn media(message: &Message) -> usize {
    let bytes = |media: &Media| match &media.source {
        MediaSource::Base64(data) => data.len(),
        _ => 0,
    };
    let part = |part: &Part| match part {
        Part::Image(media) | Part::Document(media) => bytes(media),
        _ => 0,
    };
    let block = |block: &Block| match block {
        Block::Image(media) | Block::Document(media) => bytes(media),
        _ => 0,
    };
    match message {
        Message::System(m) => m.parts().iter().map(part).sum(),
        Message::User(m) => m.parts().iter().map(part).sum(),
        Message::Assistant(m) => m.blocks().iter().map(block).sum(),
        Message::Tool(m) => m.parts().iter().map(part).sum(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use agent_core::{ModelRequest, SystemMessage, ToolSpec, UserMessage, testing::detached_run};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tokens::ApproximateCounter;

    /// Records the number of counts.
    #[derive(Clone, Default)]
    struct Noting(Arc<AtomicUsize>);

    impl Noting {
        fn note(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn taken(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    impl TokenCounter for Noting {
        fn text(&self, text: &str) -> u64 {
            ApproximateCounter.text(text)
        }

        fn message(&self, message: &Message) -> u64 {
            self.note();
            ApproximateCounter.message(message)
        }

        fn tools(&self, tools: &ToolSpecs) -> u64 {
            self.note();
            ApproximateCounter.tools(tools)
        }
    }

    fn full(history: &History) -> u64 {
        history.iter().map(|m| ApproximateCounter.message(m)).sum()
    }

    fn long_history() -> History {
        History::from_messages((0..500).map(|n| Message::user(format!("message number {n}")))).expect("paired")
    }

    #[test]
    fn only_the_new_message_of_a_long_history_is_counted() {
        let noting = Noting::default();
        let counter = IncrementalCounter::new(noting.clone());
        let mut history = long_history();
        counter.history(&history);
        assert_eq!(noting.taken(), 500);
        history.push(Message::user("one more")).expect("paired");
        assert_eq!(counter.history(&history.clone()), full(&history));
        assert_eq!(noting.taken(), 1);
    }

    #[test]
    fn a_prompt_is_the_system_prompt_the_tools_and_the_history_and_only_what_is_new_is_counted() {
        let noting = Noting::default();
        let counter = IncrementalCounter::new(noting.clone());
        let mut history = long_history();
        let request = |history: &History| {
            let mut req = ModelRequest::new(detached_run(history.clone()).cx().clone());
            req.system = Some(SystemMessage::new(vec![Part::text("Be brief.")]));
            req.tools = (0..50).map(|n| ToolSpec::new(format!("tool {n}"), "Looks.", json!({}))).collect();
            req
        };
        let first = request(&history);
        let system = ApproximateCounter.message(&Message::system("Be brief."));
        assert_eq!(first.tokens(&counter), system + ApproximateCounter.tools(&first.tools) + full(&history));
        assert_eq!(noting.taken(), 500 + 1 + 1);
        history.push(Message::user("one more")).expect("paired");
        let mut next = request(&history);
        (next.system, next.tools) = (first.system.clone(), first.tools.clone());
        assert_eq!(next.tokens(&counter), next.tokens(&ApproximateCounter));
        assert_eq!(noting.taken(), 1);
    }

    #[test]
    fn the_tools_of_a_run_are_counted_once() {
        let noting = Noting::default();
        let counter = IncrementalCounter::new(noting.clone());
        let tools = ToolSpecs::from_iter([ToolSpec::new("look", "Looks.", json!({}))]);
        assert_eq!(counter.tools(&tools), counter.tools(&tools.clone()));
        assert_eq!((noting.taken(), counter.tools(&tools)), (1, ApproximateCounter.tools(&tools)));
    }

    #[test]
    fn an_edited_message_is_another_message() {
        let counter = IncrementalCounter::new(ApproximateCounter);
        let mut message = UserMessage::new(vec![Part::text("short")]);
        assert_eq!(counter.message(&Message::User(message.clone())), 5);
        message.parts_mut()[0] = Part::text("a text that is quite a bit longer");
        assert_eq!(counter.message(&Message::User(message)), 12);
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_in_use_stays() {
        let noting = Noting::default();
        let counter = IncrementalCounter::new(noting.clone()).with_limit(64 << 10);
        let used = long_history();
        for n in 0..200 {
            counter.message(&Message::user(format!("{n}: {}", "x".repeat(4000))));
            counter.history(&used);
        }
        let kept = counter.kept();
        assert!(kept.len() < 600, "of 700 messages, the long ones weigh too much to be kept");
        assert_eq!(noting.taken(), 700, "the history was counted once");
    }

    #[test]
    fn a_message_with_a_large_image_is_counted_and_let_go() {
        let counter = IncrementalCounter::new(ApproximateCounter);
        let image =
            |bytes| Message::User(UserMessage::new(vec![Part::Image(Media::base64("A".repeat(bytes), "image/png"))]));
        assert_eq!(counter.message(&image(100)), counter.message(&image(MEDIA + 1)));
        assert_eq!(counter.kept().len(), 1);
    }

    proptest! {
        #[test]
        fn incremental_is_full(steps in prop::collection::vec((any::<bool>(), "[a-z ]{0,30}", any::<prop::sample::Index>()), 1..60)) {
            let counter = IncrementalCounter::new(ApproximateCounter).with_limit(400);
            let mut history = History::default();
            for (push, text, at) in steps {
                if push || history.is_empty() {
                    history.push(Message::user(text)).expect("paired");
                } else {
                    let at = at.index(history.len());
                    history.edit(|messages| match text.len() {
                        0 => drop(messages.remove(at)),
                        _ => messages[at] = Message::user(text),
                    }).expect("paired");
                }
                prop_assert_eq!(counter.history(&history), full(&history));
            }
        }
    }
}
