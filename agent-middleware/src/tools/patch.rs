//! [`PatchToolCalls`].

use agent_core::{
    EventKind, History, Message, Middleware, Part, Placement, Result, RunCx, ToolMessage, engine::NO_RESULT,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Configuration of `PatchToolCalls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PatchToolCallsConfig {
    /// Result text of an interrupted call. Default: the framework's own, so that nothing changes.
    pub text: Option<String>,
}

/// Sets the result text of interrupted calls, and reports when a run begins with such calls.
///
/// No middleware is needed to pair calls with results: a [`History`] cannot hold an unpaired call.
/// Imported messages are repaired and the repair is reported; a run that died leaves its open calls
/// answered with [`NO_RESULT`]. This middleware finds these results in the initial history of a
/// run.
///
/// # Order
///
/// Outermost: other middlewares see the patched history when the run begins.
///
/// ```
/// use agent_middleware::PatchToolCalls;
///
/// let patch = PatchToolCalls::new().text("The call was cut off. Check what it did before you call it again.");
/// # drop(patch);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PatchToolCalls {
    config: PatchToolCallsConfig,
}

impl PatchToolCalls {
    /// Reports interrupted calls, with the framework's result text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the result text of interrupted calls.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.config.text = Some(text.into());
        self
    }
}

impl From<PatchToolCallsConfig> for PatchToolCalls {
    fn from(config: PatchToolCallsConfig) -> Self {
        Self { config }
    }
}

fn is_patch(message: &Message) -> bool {
    let patched = |part: &Part| part.as_text() == Some(NO_RESULT);
    message.as_tool().is_some_and(|result| result.is_error() && matches!(result.parts(), [one] if patched(one)))
}

#[async_trait]
impl Middleware for PatchToolCalls {
    fn name(&self) -> &str {
        "patch_tool_calls"
    }

    fn placement(&self) -> Placement {
        Placement::default().outside("context_compaction").unique()
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let kept = cx.history();
        let calls: Vec<_> =
            kept.iter().filter(|m| is_patch(m)).filter_map(Message::as_tool).map(ToolMessage::name).collect();
        if calls.is_empty() {
            return Ok(());
        }
        let message = format!("calls were interrupted and have no result: {}", calls.join(", "));
        cx.emit(EventKind::Warning { message });
        let Some(text) = self.config.text.as_ref().filter(|text| *text != NO_RESULT) else { return Ok(()) };
        let patched = kept.iter().cloned().map(|mut message| {
            if let (true, Message::Tool(result)) = (is_patch(&message), &mut message) {
                *result.parts_mut() = vec![Part::text(text)];
            }
            message
        });
        cx.replace_history(History::from_messages(patched)?, "patch_tool_calls");
        Ok(())
    }
}
