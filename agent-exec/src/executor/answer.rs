//! Answers a tool call: merges its writes into the state and truncates its output.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use agent_core::{Error, ToolOptions, ToolOutput, run::checkpoint::PendingTurn};

use super::Active;
use crate::engine::Opened;

impl Active<'_> {
    /// Merges the tool's declared writes into the state. If a merge fails, the call is answered
    /// with an error for the model.
    pub(super) fn write_state(&self, call_id: &Arc<str>, options: &ToolOptions, output: ToolOutput) -> ToolOutput {
        let Some(value) = output.as_value().filter(|value| value.is_object() && !output.is_error()) else {
            return output;
        };
        let cx = self.cx().engine().of_call(call_id);
        for write in &options.writes {
            let part = match &write.source {
                Some(source) => value.get(source),
                None => Some(value),
            };
            let Some(part) = part else { continue };
            let set = || cx.state().set_value(&write.key, part.clone(), write.merge.as_ref());
            let merged = catch_unwind(AssertUnwindSafe(set));
            if let Err(e) = merged.unwrap_or_else(|_| Err(Error::tool("the merge failed unexpectedly"))) {
                return ToolOutput::error(format!("The result of call '{call_id}' could not be kept: {}", e.message()));
            }
        }
        output
    }

    /// Records the answer of a call. An answered call never runs again.
    pub(super) fn answer(&self, turn: &PendingTurn, index: usize, output: ToolOutput) {
        let output = shortened(output, self.executor.limits.tool_output);
        if let Some(call) = turn.message.calls().nth(index) {
            self.cx().engine().log().record_answered(&call.id, &call.name, &output);
        }
    }
}

/// Truncates the output's text to at most `most` bytes, at a character boundary, and appends a
/// note.
fn shortened(mut output: ToolOutput, most: usize) -> ToolOutput {
    let size: usize = output.content().iter().filter_map(|p| p.as_text()).map(str::len).sum();
    if size <= most {
        return output;
    }
    let mut left = most;
    for part in output.content_mut() {
        if let agent_core::Part::Text(text) = part {
            let cut = (0..=left.min(text.text.len())).rev().find(|at| text.text.is_char_boundary(*at)).unwrap_or(0);
            text.text.truncate(cut);
            left -= cut;
        }
    }
    let note = format!("[Cut: {most} of {size} bytes shown; the whole result is in the journal.]");
    output.content_mut().push(note.into());
    output
}
