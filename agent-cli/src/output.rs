//! Output of the program, and its exit code.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use agent::{Error, ExitReason, Result, RunEnd, error::ErrorKind};
pub(crate) use agent_server::export::{moment, plain};
use serde_json::{Value, json};

use crate::cli::Global;

/// Exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All is done.
    Finished,
    /// Something failed, or two runs differ.
    Failed,
    /// Invalid arguments or configuration.
    Usage,
    /// A run waits for an answer.
    Waits,
    /// Ctrl-C, or SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        Self::from(match end {
            End::Finished => 0,
            End::Failed => 1,
            End::Usage => 2,
            End::Waits => 3,
            End::Interrupted => 130,
            End::Terminated => 143,
        })
    }
}

impl End {
    /// Returns the exit status of an error.
    pub(crate) fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Config => Self::Usage,
            ErrorKind::Cancelled => Self::Interrupted,
            ErrorKind::Interrupted => Self::Waits,
            _ => Self::Failed,
        }
    }

    /// Exit code for the end of a run. A run that a limit ended, or that has no answer, failed.
    pub(crate) fn of_run(end: &RunEnd) -> Self {
        match end {
            RunEnd::Finished(finished) if ended_early(&finished.reason) => Self::Failed,
            RunEnd::Finished(_) => Self::Finished,
            RunEnd::Cancelled(_) => Self::Interrupted,
            _ => Self::Waits,
        }
    }
}

/// True if something other than the model, a tool or a hook ended the run: a limit, or the provider.
pub(crate) fn ended_early(reason: &ExitReason) -> bool {
    !matches!(reason, ExitReason::Text | ExitReason::Tool(_) | ExitReason::Verdict)
}

/// An error with what caused it.
pub(crate) fn explained(error: &Error) -> String {
    let mut text = error.message().to_owned();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        // Without the kind, so that a repeated message is recognised.
        let said = cause.downcast_ref::<Error>().map_or_else(|| cause.to_string(), |error| error.message().to_owned());
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    cut(text, MOST_EXPLAINED)
}

/// Bytes of an error that are shown.
const MOST_EXPLAINED: usize = 4_000;

/// A text that is too long, cut at a letter.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" …");
    }
    text
}

/// A failure to read or write something of the user's.
pub(crate) fn cannot(what: impl std::fmt::Display, error: io::Error) -> Error {
    Error::new(ErrorKind::Config, format!("{what}: {error}")).with_source(error)
}

/// The first line of a text, cut to so many characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let text = plain(text);
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = words.char_indices().nth(most) {
        words.truncate(at);
        words.push('…');
    }
    words
}

/// Why a program ends of which nobody reads the output any more.
const NOBODY_READS: &str = "nobody reads standard output any more";

/// Reports an error, unless the reader of standard output closed it (`| head`).
pub(crate) fn tell(error: &Error) {
    if error.message() != NOBODY_READS {
        eprintln!("agent: {}", plain(&explained(error)));
    }
}

/// As [`tell`], as a line of JSON on standard output, where the events of a run are.
pub(crate) fn tell_json(error: &Error) {
    if error.message() != NOBODY_READS {
        // Nobody hears that it cannot be written.
        let _ = print_json(&json!({"end": "failed", "kind": error.kind(), "error": explained(error)}));
    }
}

/// Says where something is served: to people on standard error, to programs on standard output.
///
/// # Errors
/// As [`print`].
pub(crate) fn announce(global: &Global, address: &str, words: &str) -> Result<()> {
    if global.json {
        return print_json(&json!({"serving": address}));
    }
    eprintln!("agent: {}", plain(words));
    Ok(())
}

/// Writes a text to standard output. A reader that went away ends the program.
///
/// # Errors
/// If it cannot be written for another reason.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let shown = if out.is_terminal() { plain(text) } else { Cow::Borrowed(text) };
    match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Error::new(ErrorKind::Cancelled, NOBODY_READS)),
        written => written.map_err(|e| cannot("standard output", e)),
    }
}

/// Writes a value as a line of JSON.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_json(value: &Value) -> Result<()> {
    print(&format!("{value}\n"))
}

/// Rows under each other, each column as wide as it must be; the last is not filled up.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |n: usize| rows.iter().filter_map(|row| row.get(n)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(n, cell)| format!("{cell:<0$}", widths[n]));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Millionths of a dollar, as people read them.
pub(crate) fn dollars(micros: u64) -> String {
    let dollars = micros as f64 / 1e6;
    if micros > 0 && micros < 10_000 { format!("${dollars:.6}") } else { format!("${dollars:.2}") }
}

/// A number with a comma at each thousand.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span of time in milliseconds, as people read it.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
    }
}

/// Writes with colours on standard error, where that is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Colours if standard error is a terminal and `NO_COLOR` is not set.
    pub(crate) fn stderr() -> Self {
        Self(io::stderr().is_terminal() && wants_colour())
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        let text = plain(text);
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into_owned() }
    }
}

/// True unless `NO_COLOR` holds something, or the terminal is dumb.
pub(crate) fn wants_colour() -> bool {
    let is_set = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_set && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_with_the_same_message_is_not_repeated() {
        let cause = Error::new(ErrorKind::Transport, "the server went away");
        let error = Error::new(ErrorKind::Transport, "cannot be reached: the server went away").with_source(cause);
        assert_eq!(explained(&error), "cannot be reached: the server went away");
    }

    #[test]
    fn what_a_model_says_cannot_act_on_the_terminal() {
        assert_eq!(line("one\n two\x07 three", 9), "one two\u{FFFD} …");
    }

    #[test]
    fn numbers_spans_and_money_are_written_for_people() {
        assert_eq!((count(7), count(1_234_567)), ("7".into(), "1,234,567".into()));
        assert_eq!(
            (dollars(0), dollars(123), dollars(1_500_000)),
            ("$0.00".into(), "$0.000123".into(), "$1.50".into())
        );
        assert_eq!((span(5), span(2_340), span(61_000)), ("5 ms".into(), "2.3 s".into(), "1 min 1 s".into()));
    }
}
