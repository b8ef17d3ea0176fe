//! Execution of a program in a sandbox of the service.

use std::time::Duration;

use agent_core::{Error, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{spawn, sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    daemon::{Daemon, Events},
    link::{Link, State},
    wire::Event,
};
use crate::sandbox::{
    Command, Exit, Process,
    marked::{KILL, MARK, NO_DIRECTORY, READY, gated, new_mark},
    process::Driver,
};

/// Timeout for a program's first output, for killing its remaining processes, and for its exit
/// status after that.
const LONGEST: Duration = Duration::from_secs(30);

/// Number of attempts to kill a command's processes.
const KILLS: u32 = 3;

/// Maximum of bytes of one input message.
const PIECE: usize = 256 << 10;

/// Running program, with its descendants.
struct Running {
    link: Link,
    pid: u32,
    mark: String,
    /// Number of pauses of the sandbox at the time of the subscription.
    pauses: u64,
}

/// Starts a program with merged output streams.
pub(super) async fn start(link: &Link, root: &str, temp: &str, command: Command) -> Result<Process> {
    let dir = match command.dir {
        Some(dir) if dir.starts_with('/') => dir,
        Some(dir) => format!("{root}/{dir}"),
        None => root.to_owned(),
    };
    let mark = new_mark(link.id());
    let args = gated(&dir, &mark, command.program, command.args);
    let mut env = command.env;
    env.entry("TMPDIR".to_owned()).or_insert_with(|| temp.to_owned());
    env.insert(MARK.to_owned(), mark.clone());
    let pauses = link.state().pauses();
    let (pid, mut events) = link.daemon().start("sh", &args, &json!(env), true).await?;
    let running = Running { link: link.clone(), pid, mark, pauses };
    let rest = match timeout(LONGEST, first(&mut events)).await.unwrap_or_else(|_| Ok(Bytes::new())) {
        Ok(said) if said.first() == Some(&READY) => said.slice(1..),
        Ok(said) if said.first() == Some(&NO_DIRECTORY) => {
            return Err(Error::tool(format!("'{dir}' is no directory of the sandbox")));
        }
        Ok(_) => {
            running.kill_all().await;
            return Err(Error::tool("the program cannot be started: the sandbox has no shell, or has ended"));
        }
        Err(e) => {
            running.kill_all().await;
            return Err(e);
        }
    };
    let killed = CancellationToken::new();
    let kill = killed.clone();
    let (process, driver) = Process::new(move || kill.cancel());
    if !rest.is_empty() {
        // The channel is new and has capacity.
        drop(driver.output.try_send(rest));
    }
    spawn(drive(running, driver, events, killed));
    Ok(process)
}

/// Returns the first output; empty if the program ends before.
async fn first(events: &mut Events) -> Result<Bytes> {
    loop {
        match events.next().await? {
            Some(Event::Output(said)) if !said.is_empty() => return Ok(said),
            Some(Event::Ended(_)) | None => return Ok(Bytes::new()),
            Some(_) => {}
        }
    }
}

async fn drive(mut running: Running, driver: Driver, mut events: Events, killed: CancellationToken) {
    let Driver { output, input, exit } = driver;
    let feeding = spawn(feed(input, running.link.clone(), running.pid));
    let ended = loop {
        let event = tokio::select! {
            biased;
            () = killed.cancelled() => break running.end(&mut events).await,
            event = events.next() => event,
        };
        match event {
            Ok(Some(Event::Output(piece))) => tokio::select! {
                biased;
                () = killed.cancelled() => {}
                // Dropping the process has killed the program.
                _ = output.send(piece) => {}
            },
            Ok(Some(Event::Ended(exit))) => break Some(exit),
            Ok(Some(Event::Started(_) | Event::Alive)) => {}
            Ok(None) | Err(_) => match running.again(&killed).await {
                Some(again) => events = again,
                None => break None,
            },
        }
    };
    feeding.abort();
    spawn(events.finish());
    // If the wrapper shell was killed, or its stream was lost, it killed no descendants.
    let left = ended.is_none_or(|exit| exit.code.is_none());
    if let Some(ended) = ended {
        // The receiver may be gone.
        let _ = exit.send(ended);
    } else {
        drop(exit);
    }
    if left {
        running.kill_all().await;
    }
}

async fn feed(mut from: mpsc::Receiver<Bytes>, link: Link, pid: u32) {
    while let Some(mut bytes) = from.recv().await {
        while !bytes.is_empty() {
            link.goes_on().await;
            // A program that stops reading is detected by the end of the channel.
            if link.daemon().write_input(pid, &bytes.split_to(PIECE.min(bytes.len()))).await.is_err() {
                return;
            }
        }
    }
    // The program has ended, or waits for input that never comes: its timeout ends it.
    link.goes_on().await;
    drop(link.daemon().end_input(pid).await);
}

impl Running {
    /// Kills the program, and returns its exit status if the daemon reports it.
    async fn end(&self, events: &mut Events) -> Option<Exit> {
        if self.link.state().is_paused() {
            return None;
        }
        let drained = async {
            loop {
                match events.next().await {
                    Ok(Some(Event::Ended(exit))) => return Some(exit),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return None,
                }
            }
        };
        // Remaining output is drained, so that the program can exit.
        let (killed, ended) = tokio::join!(self.kill_all(), timeout(LONGEST, drained));
        ended.ok().flatten().or(killed.then_some(Exit::signal(9)))
    }

    /// Subscribes again, if the stream broke because the sandbox was paused.
    async fn again(&mut self, killed: &CancellationToken) -> Option<Events> {
        let paused = self.link.state().pauses();
        if std::mem::replace(&mut self.pauses, paused) == paused {
            return None;
        }
        tokio::select! {
            () = killed.cancelled() => return None,
            () = self.link.goes_on() => {}
        }
        self.link.daemon().connect(self.pid).await.ok()
    }

    /// Kills the command's processes, as soon as the sandbox is not paused. Returns true if none is
    /// left.
    async fn kill_all(&self) -> bool {
        self.link.goes_on().await;
        for _ in 0..KILLS {
            if self.link.state() == State::Closed
                || matches!(kill_marked(&self.link.daemon(), &self.mark).await, Ok(true))
            {
                return true;
            }
        }
        // As a last resort, the shell that started them.
        self.link.daemon().kill(self.pid).await.is_ok()
    }
}

/// Kills all processes with a mark. Returns false if some are left.
pub(super) async fn kill_marked(daemon: &Daemon, mark: &str) -> Result<bool> {
    let args = ["-c", KILL, "sh", mark].map(str::to_owned);
    let killed = async {
        let (_, mut events) = daemon.start("sh", &args, &Value::Object(serde_json::Map::default()), false).await?;
        while let Some(event) = events.next().await? {
            if let Event::Ended(exit) = event {
                return Ok(exit.is_success());
            }
        }
        Ok(false)
    };
    timeout(LONGEST, killed).await.unwrap_or(Ok(false))
}
