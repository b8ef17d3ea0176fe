//! [`LongToolOutput`]: truncates long outputs, and returns the rest on request.

mod builder;
mod config;

use std::sync::Arc;

use agent_core::{
    EventKind, Middleware, Part, Placement, Result, RunCx, TokenCounter, Tool, ToolOutput, ToolRequest, boxed,
};
use async_trait::async_trait;

pub use self::{builder::LongToolOutputBuilder, config::LongToolOutputConfig};
use crate::{
    archive::{Archive, Archived, READ_ARCHIVED, READ_OUTPUT},
    cut,
};

/// Truncates the middle of tool outputs that are too long for a conversation. With an
/// [archive](LongToolOutputBuilder::archive), the whole output is kept, and the model can read any
/// part of it with the tool `read_output`.
///
/// By default, an output of more than 10,000 characters is shown with its first and its last 5,000,
/// and a line that describes the omission. Only text is truncated: images and documents stay, and
/// so does the output's [value](agent_core::ToolOutput::as_value), which is for programs. An error
/// output is truncated like any other.
///
/// # Order
///
/// An output passes the innermost middleware first. Middleware that must see it whole, or must
/// change it before it is archived, belongs inside.
///
/// ```text
/// // right: the redactor sees the whole output before it is archived
/// builder.middleware(LongToolOutput::new()).middleware(redactor)
/// // wrong: the archived output is not redacted
/// builder.middleware(redactor).middleware(LongToolOutput::new())
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{LongToolOutput, archive::MemoryArchive};
///
/// let outputs = LongToolOutput::builder().max_chars(4_000).show(2_000, 1_000).archive(MemoryArchive::new()).build()?;
/// # drop(outputs);
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct LongToolOutput {
    config: LongToolOutputConfig,
    counter: Arc<dyn TokenCounter>,
    archive: Option<Arc<dyn Archive>>,
    tools: Vec<Arc<dyn Tool>>,
}

impl LongToolOutput {
    /// Creates the middleware with its defaults: outputs of up to 10,000 characters are shown
    /// whole, and nothing is archived.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder, to change the defaults.
    pub fn builder() -> LongToolOutputBuilder {
        LongToolOutputBuilder::default()
    }

    /// True if no limit can apply, without concatenating the text: there are at most as many
    /// characters as bytes.
    fn is_short(&self, parts: &[Part]) -> bool {
        let bytes: usize = parts.iter().filter_map(Part::as_text).map(|text| text.len() + 1).sum();
        self.config.max_tokens.is_none() && bytes <= self.config.max_chars
    }

    /// Returns the beginning and the end that the limits allow to show; `None` if the output may be
    /// shown whole.
    fn ends<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let LongToolOutputConfig { max_chars, max_tokens, head_chars, tail_chars, .. } = self.config;
        let chars = text.chars().count();
        let tokens = max_tokens.and_then(|most| {
            let tokens = self.counter.text(text);
            (tokens > most).then(|| most as f64 / tokens as f64)
        });
        if chars <= max_chars && tokens.is_none() {
            return None;
        }
        // The number of characters that corresponds to the allowed tokens.
        let allowed = tokens.map_or(max_chars, |part| ((chars as f64 * part) as usize).min(max_chars));
        let shown = (head_chars + tail_chars).max(1);
        let part = |of: usize| if shown > allowed { of * allowed / shown } else { of };
        cut::ends(text, part(head_chars), part(tail_chars))
    }

    async fn shorten(&self, cx: &RunCx, tool: &str, out: &mut ToolOutput) {
        let text = out.to_text();
        let Some((head, tail)) = self.ends(&text) else { return };
        let total = text.chars().count();
        let missing = total - head.chars().count() - tail.chars().count();
        let whole = match &self.archive {
            Some(archive) => {
                let archived = Archived::new(tool, text.clone());
                let handle = archived.handle.clone();
                match archive.put(cx, vec![archived]).await {
                    Ok(()) => format!(" The tool {READ_OUTPUT} with handle \"{handle}\" shows any part of it."),
                    Err(e) => {
                        let message = format!("long tool output: the output of '{tool}' could not be archived: {e}");
                        cx.emit(EventKind::Warning { message });
                        String::new()
                    }
                }
            }
            None => String::new(),
        };
        let notice = format!("[... {missing} of {total} characters are left out.{whole} ...]");
        let shown = Part::text(format!("{head}\n{notice}\n{tail}"));
        let others = out.content().iter().filter(|part| part.as_text().is_none()).cloned();
        *out.content_mut() = std::iter::once(shown).chain(others.collect::<Vec<_>>()).collect();
    }
}

impl Default for LongToolOutput {
    fn default() -> Self {
        Self::builder().build().expect("the defaults are sound: a test builds them")
    }
}

#[async_trait]
impl Middleware for LongToolOutput {
    fn name(&self) -> &str {
        "long_tool_output"
    }

    fn placement(&self) -> Placement {
        Placement::default().unique()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    async fn after_tool(&self, cx: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        let tool = &*req.call.name;
        // Outputs that were requested in parts are not truncated again.
        let reads = [READ_OUTPUT, READ_ARCHIVED].contains(&tool);
        if !reads && !self.config.bypass.contains(tool) && !self.is_short(out.content()) {
            boxed(|| self.shorten(cx, tool, out)).await;
        }
        Ok(())
    }
}

impl std::fmt::Debug for LongToolOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LongToolOutput")
            .field("config", &self.config)
            .field("archive", &self.archive)
            .finish_non_exhaustive()
    }
}
