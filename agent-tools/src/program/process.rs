//! Child process.

#[cfg(feature = "mcp")]
use std::time::Duration;
use std::{process::Stdio as Pipe, sync::Arc};

use agent_core::{Error, ErrorKind, Result};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStderr, Command},
};

use super::{LastWords, Reader, Stdio, Writer};

/// Variables of this process's environment that a program inherits. None of them is a secret.
const PASSED: &[&str] = &["PATH", "HOME", "LANG", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER"];

/// Variables that programs need on Windows.
const PASSED_ON_WINDOWS: &[&str] =
    &["APPDATA", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"];

/// Time that a program has to exit after its input is closed.
#[cfg(feature = "mcp")]
const GRACE: Duration = Duration::from_secs(2);

/// Interval at which a program that is to exit is checked.
#[cfg(feature = "mcp")]
const POLL: Duration = Duration::from_millis(10);

/// Maximum of bytes that are logged per line of standard error.
const LOGGED: u64 = 4096;

/// Running program. Dropping it kills the program and all its descendants in the process group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Process group id.
    group: Option<u32>,
    #[cfg(feature = "mcp")]
    last_words: LastWords,
}

impl Process {
    /// Starts the program.
    pub(crate) fn start(server: &Arc<str>, stdio: &Stdio) -> Result<(Self, (Reader, Writer))> {
        let mut command = Command::new(&stdio.program);
        command.args(&stdio.args).env_clear().kill_on_drop(true);
        let windows = PASSED_ON_WINDOWS.iter().filter(|_| cfg!(windows));
        let names = PASSED.iter().chain(windows).copied().chain(stdio.passed.iter().map(String::as_str));
        command.envs(names.filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(stdio.env.iter().map(|(name, value)| (name, value.expose())));
        if let Some(directory) = &stdio.directory {
            command.current_dir(directory);
        }
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|e| {
            let message = format!("the program '{}' cannot be started: {e}", stdio.program);
            Error::new(ErrorKind::Transport, message).with_source(e)
        })?;
        let (output, input) = child.stdout.take().zip(child.stdin.take()).expect("both are piped");
        let last_words = LastWords::default();
        if let Some(stderr) = child.stderr.take() {
            let secrets = stdio.env.values().map(|value| value.expose().to_owned()).collect();
            tokio::spawn(log(server.clone(), stderr, secrets, last_words.clone()));
        }
        let group = child.id();
        let process = Self {
            child,
            group,
            #[cfg(feature = "mcp")]
            last_words,
        };
        Ok((process, (Box::new(output), Box::new(input))))
    }

    /// Returns what the program last wrote to its standard error.
    #[cfg(feature = "mcp")]
    pub(crate) fn last_words(&self) -> LastWords {
        self.last_words.clone()
    }

    /// Returns true while the program runs.
    #[cfg(feature = "acp")]
    pub(crate) fn is_running(&mut self) -> bool {
        !self.has_exited()
    }

    /// Waits a moment for the program to exit, and kills it.
    #[cfg(feature = "mcp")]
    pub(crate) async fn end(mut self) {
        let exited = async {
            while !self.has_exited() {
                tokio::time::sleep(POLL).await;
            }
        };
        let _ = tokio::time::timeout(GRACE, exited).await;
    }

    /// Returns true once the program has exited. Does not reap it: while it is a zombie, no
    /// other process gets its id, so that killing its group cannot reach another one.
    #[cfg(target_os = "linux")]
    fn has_exited(&mut self) -> bool {
        use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
        let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()) else { return true };
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::Pid(nix::unistd::Pid::from_raw(pid)), flags), Ok(WaitStatus::StillAlive))
    }

    #[cfg(not(target_os = "linux"))]
    fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Descendants (a package runner starts the server itself) share the process group, and are
        // killed with it.
        #[cfg(unix)]
        if let Some(group) = self.group.and_then(|id| i32::try_from(id).ok()) {
            let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), nix::sys::signal::Signal::SIGKILL);
        }
        let _ = self.child.start_kill();
    }
}

/// Logs the standard error of a program, and keeps its last lines without the `secrets`.
async fn log(server: Arc<str>, stderr: ChildStderr, secrets: Vec<String>, last_words: LastWords) {
    let _ended = last_words.until_dropped();
    let (mut reader, mut line) = (BufReader::new(stderr), Vec::new());
    loop {
        line.clear();
        match (&mut reader).take(LOGGED).read_until(b'\n', &mut line).await {
            Ok(read) if read > 0 => {
                let text = String::from_utf8_lossy(&line);
                tracing::debug!(server = &*server, "{}", text.trim_end());
                let secrets = secrets.iter().filter(|secret| !secret.is_empty());
                last_words.add(&secrets.fold(text.trim().to_owned(), |text, secret| text.replace(secret, "...")));
            }
            _ => return,
        }
    }
}
