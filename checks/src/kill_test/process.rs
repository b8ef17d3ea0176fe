//! Child process and its death.

use std::{
    io::{self, BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::store::Store;

/// Manner of a process's death.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Death {
    /// Runs to the end.
    None,
    /// Kills itself at this kill point.
    At(u64),
    /// Is killed from outside after this time.
    After(Duration),
}

/// Report of a process before its end.
#[derive(Debug, Default)]
pub(crate) struct Lived {
    /// Acknowledged entries: sequence number and digest.
    pub(crate) acknowledged: Vec<(u64, u64)>,
    /// Number of kill points, if the process ran to its end.
    pub(crate) moments: Option<u64>,
    /// True if SIGKILL ended the process.
    pub(crate) killed: bool,
}

/// Runs one process.
pub(crate) fn live(dir: &Path, store: Store, generation: u64, death: Death) -> io::Result<Lived> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([super::NAME, "--store", store.as_str(), "--generation", &generation.to_string()]);
    command.arg("--child").arg(dir).stdin(Stdio::null()).stdout(Stdio::piped());
    if let Death::At(moment) = death {
        command.args(["--dies-at", &moment.to_string()]);
    }
    let mut child = command.spawn()?;
    let lines = read(&mut child)?;
    let told = match death {
        Death::After(time) => match lines.recv_timeout(time) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill()?;
                lines.recv()
            }
            told => Ok(told.unwrap_or_default()),
        },
        _ => lines.recv(),
    };
    let status = child.wait()?;
    let mut lived = told.unwrap_or_default();
    lived.killed = status.signal() == Some(9);
    if !status.success() && !lived.killed {
        return Err(io::Error::other(format!("a process failed: {status}")));
    }
    Ok(lived)
}

/// Reads the report of a process until it ends. A truncated last line is ignored.
fn read(child: &mut Child) -> io::Result<mpsc::Receiver<Lived>> {
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the process has no output"))?;
    let (give, take) = mpsc::channel();
    thread::spawn(move || {
        let (mut lived, mut line, mut reader) = (Lived::default(), String::new(), BufReader::new(stdout));
        while reader.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                // Follows the session.
                Some("ack") => lived.acknowledged.extend(number(words.nth(1)).zip(number(words.next()))),
                Some("end") => lived.moments = number(words.next()),
                _ => {}
            }
            line.clear();
        }
        drop(give.send(lived));
    });
    Ok(take)
}

fn number(word: Option<&str>) -> Option<u64> {
    word?.parse().ok()
}
