//! [`Process`]: running program.

use std::{fmt, time::Duration};

use agent_core::{Error, Result};
use bytes::Bytes;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Output channel capacity in chunks; the program blocks when it is full.
const PIECES: usize = 16;

/// Time for the rest of the output after the program has ended: a remaining process may hold the
/// pipe open.
const GRACE: Duration = Duration::from_millis(200);

/// Running program in a [`Sandbox`](super::Sandbox). Dropping it kills the program and its
/// descendants.
pub struct Process {
    output: mpsc::Receiver<Bytes>,
    input: Option<Input>,
    exit: Ending,
    kill: Box<dyn Fn() + Send + Sync>,
}

/// Standard input of a [`Process`]; closed when dropped.
#[derive(Debug)]
pub struct Input(mpsc::Sender<Bytes>);

/// Driver side of a [`Process`]: an implementation of [`Sandbox`](super::Sandbox) moves bytes
/// through it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Driver {
    /// Sender for the program's merged standard output and standard error. A full channel must
    /// block the program.
    pub output: mpsc::Sender<Bytes>,
    /// Receiver of the program's standard input, which ends with the channel.
    pub input: mpsc::Receiver<Bytes>,
    /// Sender of the exit status. Dropping it reports the program as lost.
    pub exit: oneshot::Sender<Exit>,
}

/// Exit status of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// Exit code; `None` if a signal ended the program. Most sandboxes report a signal as shells
    /// do: 128 plus its number.
    pub code: Option<i32>,
    /// Signal that ended the program.
    pub signal: Option<i32>,
}

enum Ending {
    Open(oneshot::Receiver<Exit>),
    /// `None` if the sandbox lost the program.
    Known(Option<Exit>),
}

impl Process {
    /// Creates a process and its driver side. `kill` must kill the program immediately; it is also
    /// called after the program has ended.
    pub fn new(kill: impl Fn() + Send + Sync + 'static) -> (Self, Driver) {
        let (output, read) = mpsc::channel(PIECES);
        let (write, input) = mpsc::channel(PIECES);
        let (exit, ending) = oneshot::channel();
        let process =
            Self { output: read, input: Some(Input(write)), exit: Ending::Open(ending), kill: Box::new(kill) };
        (process, Driver { output, input, exit })
    }

    /// Returns the next chunk of output; `None` at the end. Cancellation safe.
    pub async fn output(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            piece = self.output.recv() => piece,
            () = self.exit.wait() => timeout(GRACE, self.output.recv()).await.ok().flatten(),
        }
    }

    /// Takes the standard input, which is closed when dropped; `None` if it was taken before. If it
    /// is not taken, the input stays open as long as the process.
    pub fn take_input(&mut self) -> Option<Input> {
        self.input.take()
    }

    /// Kills the program and its descendants.
    pub fn kill(&self) {
        (self.kill)();
    }

    /// Waits for the exit status. The output must be read meanwhile: the program may be blocked on
    /// it.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the sandbox lost the program.
    pub async fn exit(&mut self) -> Result<Exit> {
        self.exit.wait().await;
        let Ending::Known(exit) = self.exit else { unreachable!("it was waited for") };
        exit.ok_or_else(|| Error::tool("the sandbox lost the program: how it ended is not known"))
    }
}

impl Input {
    /// Writes to the program's standard input.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the program no longer reads.
    pub async fn write(&self, input: impl Into<Bytes>) -> Result<()> {
        self.0.send(input.into()).await.map_err(|_| Error::tool("the program reads no more input"))
    }
}

impl Ending {
    async fn wait(&mut self) {
        if let Self::Open(ending) = self {
            *self = Self::Known(ending.await.ok());
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Exit {
    /// Creates the status of an exit with this code.
    pub fn code(code: i32) -> Self {
        Self { code: Some(code), signal: None }
    }

    /// Creates the status of an end by this signal.
    pub fn signal(signal: i32) -> Self {
        Self { code: None, signal: Some(signal) }
    }

    /// Returns true for the code 0.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "ended by signal {signal}"),
            (None, None) => f.write_str("ended"),
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = match &self.exit {
            Ending::Open(_) => None,
            Ending::Known(exit) => *exit,
        };
        f.debug_struct("Process").field("exit", &exit).finish_non_exhaustive()
    }
}
