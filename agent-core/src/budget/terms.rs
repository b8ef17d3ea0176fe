//! How a call is judged before it is made: what it may use at most, and what that costs.

use std::{
    io,
    sync::{Arc, LazyLock},
};

use crate::{
    error::{Error, Result},
    history::{History, WireKey},
    llm::TokenCounter,
    message::{Block, Message, Part},
    tooling::ToolSpecs,
    usage::{PriceTable, Usage},
};

/// What a budget's calls are counted and priced with.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) prices: Option<Arc<dyn PriceTable>>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) allow_unpriced: bool,
    pub(crate) answer_tokens: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { prices: None, counter: Arc::new(Generous), allow_unpriced: false, answer_tokens: 8_192 }
    }
}

pub(crate) fn no_prices() -> Error {
    Error::config(
        "a cap on money needs prices: give the budget a table with Budget::builder().prices(..), or say allow_unpriced()",
    )
}

impl Terms {
    /// What a call of `model` costs at most, in millionths of a US dollar, whatever the provider's cache makes of its prompt;
    /// 0 for a model without a price, if that is allowed.
    pub(crate) fn most(&self, model: &str, prompt: u64, answer: u64) -> Result<u64> {
        let Some(prices) = &self.prices else {
            return if self.allow_unpriced { Ok(0) } else { Err(no_prices()) };
        };
        let read = Usage::new(prompt, answer);
        let mut written = Usage::new(0, answer);
        written.cache_write = prompt;
        let mut written_long = written;
        written_long.cache_write_long = prompt;
        match prices.cost(model, &read) {
            Some(plain) => {
                let written = [&written, &written_long].into_iter().filter_map(|usage| prices.cost(model, usage));
                Ok(written.fold(plain, u64::max))
            }
            None if self.allow_unpriced => Ok(0),
            None => Err(Error::config(format!(
                "model '{model}' has no price, and its run has a cap on money: add it to the budget's price table, or say \
                 allow_unpriced()"
            ))),
        }
    }

    /// What a call used that is over, in millionths of a US dollar: by the budget's own table, or as the model reported it.
    pub(crate) fn cost(&self, asked: &str, answered: Option<&str>, usage: &Usage) -> Option<u64> {
        let own = self.prices.as_ref();
        let own =
            own.and_then(|prices| answered.and_then(|m| prices.cost(m, usage)).or_else(|| prices.cost(asked, usage)));
        own.or_else(|| usage.whole_cost())
    }

    /// The most tokens of the answer, and whether the request must be told so: a model keeps its own limit by itself.
    pub(crate) fn answer(&self, asked: Option<u64>, of_model: Option<u64>) -> (u64, bool) {
        match (asked, of_model) {
            (Some(asked), _) => (asked, false),
            (None, Some(limit)) => (limit, false),
            (None, None) => (self.answer_tokens, true),
        }
    }
}

/// Counts more tokens than ordinary text has: one for every two bytes, and much for an image or a document.
struct Generous;

/// Tokens of an image or a page of a document, with what stands around it.
const MEDIA: u64 = 3_000;
/// Under which what was counted is kept.
static KEY: LazyLock<WireKey> = LazyLock::new(|| WireKey::new(&"agent_core::budget::Generous"));
/// Around a message, a call or a tool.
const AROUND: u64 = 12;

impl TokenCounter for Generous {
    fn text(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(2)
    }

    fn message(&self, message: &Message) -> u64 {
        let parts = |parts: &[Part]| parts.iter().map(|part| self.part(part)).sum::<u64>();
        AROUND
            + match message {
                Message::System(m) => parts(m.parts()),
                Message::User(m) => parts(m.parts()),
                Message::Tool(m) => AROUND + parts(m.parts()),
                Message::Assistant(m) => m.blocks().iter().map(|block| self.block(block)).sum(),
            }
    }

    fn tools(&self, tools: &ToolSpecs) -> u64 {
        let texts = |text: &str| self.text(text);
        let tool =
            |t: &crate::tooling::ToolSpec| texts(&t.name) + texts(&t.description) + length(&t.parameters).div_ceil(2);
        tools.total(*KEY, |tools| tools.iter().map(|t| AROUND + tool(t)).sum())
    }

    /// Before every call: it must not cost more as the conversation grows.
    fn history(&self, history: &History) -> u64 {
        history.total(*KEY, |message| self.message(message))
    }
}

/// Bytes of the value as JSON, which is not made for that.
fn length(value: &serde_json::Value) -> u64 {
    struct Length(u64);

    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut length = Length(0);
    serde_json::to_writer(&mut length, value).map_or(0, |()| length.0)
}

impl Generous {
    fn part(&self, part: &Part) -> u64 {
        match part {
            Part::Text(t) => self.text(&t.text),
            Part::Image(_) | Part::Document(_) => MEDIA,
            Part::Other(raw) => self.text(raw.json()),
        }
    }

    fn block(&self, block: &Block) -> u64 {
        match block {
            Block::Text(t) => self.text(&t.text),
            Block::Reasoning(r) => self.text(&r.text) + r.encrypted.as_deref().map_or(0, |hidden| self.text(hidden)),
            Block::ToolCall(call) => AROUND + self.text(&call.name) + self.text(&call.arguments),
            Block::Image(_) | Block::Document(_) => MEDIA,
            Block::Other(raw) => self.text(raw.json()),
        }
    }
}
