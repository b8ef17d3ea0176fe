//! Lines that are typed, whoever waits for them.

use std::io::{BufRead, BufReader, Read};

use tokio::sync::mpsc;

/// Lines that may wait to be read: nobody types more ahead, and a file that is no person cannot fill the memory.
const AHEAD: usize = 64;

/// The lines of an input. A blocked read cannot be taken back, so one thread reads for all questions.
pub(super) enum Lines {
    /// Nobody asked yet.
    Closed(Box<dyn Read + Send>),
    Open(mpsc::Receiver<String>),
}

impl Lines {
    pub(super) fn of(input: impl Read + Send + 'static) -> Self {
        Self::Closed(Box::new(input))
    }

    /// Forgets the lines that came before they were asked for.
    pub(super) fn forget(&mut self) {
        if let Self::Open(lines) = self {
            while lines.try_recv().is_ok() {}
        }
    }

    /// The next line; none at the end of the input.
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
