//! What happens, as it happens, on the terminal.

use std::io::Write;

use agent::{
    AssistantMessage, Event, EventKind, Result, RunEnd,
    core::{Chunk, RunIds},
};

/// Most characters of a call's arguments and of a result that are shown.
const PREVIEW: usize = 100;

/// Prints the root agent's words as they come, and what it and the agents below it do.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    /// True while a line of the answer is open.
    mid_line: bool,
}

impl Terminal {
    pub(crate) fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Chunk(Chunk::Text { delta, .. }) if event.ids.depth == 0 => {
                print!("{delta}");
                let _ = std::io::stdout().flush(); // a closed terminal is no reason to stop
                self.mid_line = !delta.ends_with('\n');
            }
            EventKind::ModelAnswered { message, .. } => self.calls(&event.ids, message),
            EventKind::ToolAnswered { name, output, .. } => {
                let text = output.to_text();
                let mark = if output.is_error() { "failed" } else { "gave" };
                let (lines, first) = (text.lines().count(), preview(text.lines().next().unwrap_or_default()));
                self.line(&event.ids, &format!("{name} {mark} {lines} line(s): {first}"));
            }
            EventKind::Retry { attempt, delay, error, .. } => {
                self.line(&event.ids, &format!("try {attempt} in {delay:.1} s: {error}"));
            }
            EventKind::Warning { message } => self.line(&event.ids, message),
            _ => {}
        }
    }

    fn calls(&mut self, ids: &RunIds, message: &AssistantMessage) {
        for call in message.calls() {
            self.line(ids, &format!("-> {} {}", call.name, preview(&call.arguments)));
        }
    }

    /// A line about a run, indented by its depth.
    fn line(&mut self, ids: &RunIds, text: &str) {
        self.break_line();
        println!("  {}[{}] {text}", "  ".repeat(ids.depth as usize), ids.agent);
    }

    fn break_line(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            println!();
        }
    }

    pub(crate) fn end(&mut self, end: &Result<RunEnd>) {
        self.break_line();
        if let Ok(RunEnd::Finished(finished)) = end {
            let (steps, usage) = (finished.steps, finished.tree_usage);
            println!("\n({steps} steps, {} tokens in, {} out, with the agents below)", usage.prompt(), usage.output);
        }
    }
}

/// The beginning of a text, on one line.
pub(crate) fn preview(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(PREVIEW) {
        Some((cut, _)) => format!("{}..", &line[..cut]),
        None => line,
    }
}
