//! [`Process`]: a program that runs.

use std::{fmt, time::Duration};

use agent_core::{Error, Result};
use bytes::Bytes;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Pieces of output that wait for their reader; more make the program wait.
const PIECES: usize = 16;

/// How long output may still come when the program has ended: a process that it left behind may hold its end open.
const GRACE: Duration = Duration::from_millis(200);

/// A program that runs in a [`Sandbox`](super::Sandbox). Dropping it kills the program, with all that it started.
pub struct Process {
    output: mpsc::Receiver<Bytes>,
    input: Option<Input>,
    exit: Ending,
    kill: Box<dyn Fn() + Send + Sync>,
}

/// The standard input of a [`Process`]; it ends when this is dropped.
#[derive(Debug)]
pub struct Input(mpsc::Sender<Bytes>);

/// The other end of a [`Process`]: who implements a [`Sandbox`](super::Sandbox) moves bytes through it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Driver {
    /// Takes what the program writes, to its standard output and its standard error as one. A full channel is the program's to wait for.
    pub output: mpsc::Sender<Bytes>,
    /// Gives what the program is to read from its standard input, which ends with the channel.
    pub input: mpsc::Receiver<Bytes>,
    /// Takes how it ended. Dropped, it says that the program was lost.
    pub exit: oneshot::Sender<Exit>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// The code that it gave; none if a signal ended it. In most sandboxes a signal is told as shells tell it, by 128 and its number.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

enum Ending {
    Open(oneshot::Receiver<Exit>),
    /// None if the sandbox lost it.
    Known(Option<Exit>),
}

impl Process {
    /// A process and the end that drives it. `kill` ends the program at once; it is called again after it has ended.
    pub fn new(kill: impl Fn() + Send + Sync + 'static) -> (Self, Driver) {
        let (output, read) = mpsc::channel(PIECES);
        let (write, input) = mpsc::channel(PIECES);
        let (exit, ending) = oneshot::channel();
        let process =
            Self { output: read, input: Some(Input(write)), exit: Ending::Open(ending), kill: Box::new(kill) };
        (process, Driver { output, input, exit })
    }

    /// The next piece of what it writes; none at the end. Nothing is lost if the future is dropped.
    pub async fn output(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            piece = self.output.recv() => piece,
            () = self.exit.wait() => timeout(GRACE, self.output.recv()).await.ok().flatten(),
        }
    }

    /// Its standard input, which ends when it is dropped; none if it was taken before. If it is not taken, the input stays open as long as
    /// the process is held.
    pub fn take_input(&mut self) -> Option<Input> {
        self.input.take()
    }

    /// Kills it, with all that it started.
    pub fn kill(&self) {
        (self.kill)();
    }

    /// How it ended, as soon as it has. What it wrote must be read meanwhile: it may be waiting for that.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the sandbox lost it.
    pub async fn exit(&mut self) -> Result<Exit> {
        self.exit.wait().await;
        let Ending::Known(exit) = self.exit else { unreachable!("it was waited for") };
        exit.ok_or_else(|| Error::tool("the sandbox lost the program: how it ended is not known"))
    }
}

impl Input {
    /// Writes to it.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the program reads no more.
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
    /// It gave this code.
    pub fn code(code: i32) -> Self {
        Self { code: Some(code), signal: None }
    }

    /// This signal ended it.
    pub fn signal(signal: i32) -> Self {
        Self { code: None, signal: Some(signal) }
    }

    /// True for the code 0.
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
