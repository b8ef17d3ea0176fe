//! Typed lines, read by one thread for all questions.

use std::io::{BufRead, BufReader, Read};

use tokio::sync::mpsc;

/// Maximum number of buffered lines: nobody types further ahead, and a file as input cannot fill
/// the memory.
const AHEAD: usize = 64;

/// The lines of an input. A blocking read cannot be cancelled, so one thread reads for all
/// questions.
pub(super) enum Lines {
    /// Nothing was read yet.
    Closed(Box<dyn Read + Send>),
    Open(mpsc::Receiver<String>),
}

impl Lines {
    pub(super) fn of(input: impl Read + Send + 'static) -> Self {
        Self::Closed(Box::new(input))
    }

    /// Discards the lines that were typed before the question.
    pub(super) fn forget(&mut self) {
        if let Self::Open(lines) = self {
            while lines.try_recv().is_ok() {}
        }
    }

    /// Returns the next line; `None` at the end of the input.
    pub(super) async fn next(&mut self) -> Option<String> {
        loop {
            match self {
                Self::Open(lines) => return lines.recv().await,
                Self::Closed(input) => {
                    let input = std::mem::replace(input, Box::new(std::io::empty()));
                    *self = Self::Open(read(input));
                }
            }
        }
    }
}

fn read(input: Box<dyn Read + Send>) -> mpsc::Receiver<String> {
    let (lines, receiver) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        for line in BufReader::new(input).lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
