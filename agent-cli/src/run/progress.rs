//! Progress of a run, on standard error.

use std::{collections::HashMap, io::IsTerminal, sync::Arc, time::Duration};

use agent::{EventKind, event::Event};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{Paint, line};

/// Tells of tools, sub-agents and retries; at a terminal with a spinner while nothing else is said.
pub(crate) struct Progress {
    paint: Paint,
    /// False if a program reads the events.
    tells: bool,
    spinner: Option<ProgressBar>,
    has_spinner: bool,
    arguments: HashMap<Arc<str>, String>,
}

impl Progress {
    pub(crate) fn new(tells: bool) -> Self {
        let has_spinner = tells && std::io::stderr().is_terminal();
        let mut progress =
            Self { paint: Paint::stderr(), tells, spinner: None, has_spinner, arguments: HashMap::new() };
        progress.spin("thinking");
        progress
    }

    fn spin(&mut self, what: &str) {
        if !self.has_spinner {
            return;
        }
        let spinner = self.spinner.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
            let spinner = ProgressBar::new_spinner();
            spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        });
        spinner.set_message(line(what, 60));
    }

    /// Takes the spinner away: something else is written.
    pub(crate) fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    /// Tells something in a line of its own.
    pub(crate) fn note(&mut self, text: &str) {
        if self.tells {
            let text = self.paint.dim(text);
            match &self.spinner {
                Some(spinner) => spinner.suspend(|| eprintln!("{text}")),
                None => eprintln!("{text}"),
            }
        }
    }

    /// Tells what happened, if it is something to tell.
    pub(crate) fn event(&mut self, event: &Event) {
        let indent = "  ".repeat(event.ids.depth as usize);
        match &event.kind {
            EventKind::StepStarted { .. } => self.spin("thinking"),
            EventKind::ModelAnswered { message, .. } => {
                let calls = message.calls().map(|call| (call.id.clone(), call.arguments.clone()));
                self.arguments.extend(calls);
            }
            EventKind::ToolStarted { call_id, name } => {
                let arguments = self.arguments.remove(call_id).unwrap_or_default();
                self.note(&format!("{indent}· {name} {}", line(&arguments, 120)));
                self.spin(name);
            }
            EventKind::ToolAnswered { name, output, .. } if output.is_error() => {
                self.note(&format!("{indent}✗ {name}: {}", line(&output.to_text(), 200)));
            }
            EventKind::SubAgentStarted { key, .. } => self.note(&format!("{indent}▸ {key}")),
            EventKind::Retry { attempt, delay, error, .. } => {
                self.note(&format!("{indent}! try {attempt} in {delay:.1} s: {}", line(error, 200)));
            }
            EventKind::Failover { from, to, error, .. } => {
                self.note(&format!("{indent}! {to} in the place of {from}: {}", line(error, 200)));
            }
            EventKind::Warning { message } => self.note(&format!("{indent}! {}", line(message, 400))),
            EventKind::HistoryReplaced { reason, before, after } if reason != "resumed" => {
                self.note(&format!(
                    "{indent}! the conversation was replaced ({reason}): {before} messages, now {after}"
                ));
            }
            _ => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
