//! Starting a program in a container.

use std::{pin::Pin, sync::Arc, time::Duration};

use agent_core::{Error, Result};
use bollard::{
    container::LogOutput,
    exec::{CreateExecOptions, StartExecOptions, StartExecResults},
};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    spawn,
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use crate::sandbox::{
    Command, Exit, Process,
    marked::{KILL, MARK, NO_DIRECTORY, READY, gated, new_mark},
    process::Driver,
};

/// Longest time that a program takes to start, and that its remains take to be killed.
const LONGEST: Duration = Duration::from_secs(30);

/// How long the engine is left alone before it is asked whether a program runs: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];

/// How often it is tried to kill a command's processes.
const KILLS: u32 = 4;

/// The code of a program that was killed.
const KILLED: i32 = 137;

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;
type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// A program of a container, with all that it started.
#[derive(Clone)]
struct Running {
    engine: Engine,
    container: Arc<str>,
    exec: String,
    mark: String,
}

pub(super) async fn start(engine: &Engine, container: &Arc<str>, root: &str, command: Command) -> Result<Process> {
    let dir = command.dir.unwrap_or_else(|| root.to_owned());
    let mark = new_mark(container);
    let cmd = ["sh".to_owned()].into_iter().chain(gated(&dir, &mark, command.program, command.args)).collect();
    let env = command.env.into_iter().chain([(MARK.to_owned(), mark.clone())]);
    let env = env.map(|(name, value)| format!("{name}={value}")).collect();
    let exec = create(engine, container, root, cmd, env).await?;
    let (mut output, input) = attach(engine, &exec).await?;
    let running = Running { engine: engine.clone(), container: container.clone(), exec, mark };
    let first = timeout(LONGEST, output.next()).await.ok().flatten().and_then(Result::ok).map(LogOutput::into_bytes);
    let rest = match first {
        Some(said) if said.first() == Some(&READY) => said.slice(1..),
        Some(said) if said.first() == Some(&NO_DIRECTORY) => {
            return Err(Error::tool(format!("'{dir}' is no directory of the sandbox")));
        }
        said => {
            running.kill_all().await;
            let said = String::from_utf8_lossy(&said.unwrap_or_default()).trim().chars().take(200).collect::<String>();
            return Err(Error::tool(format!(
                "the program cannot be started: the image has no shell, or the sandbox has ended ({said})"
            )));
        }
    };
    let killed = CancellationToken::new();
    let kill = killed.clone();
    let (process, driver) = Process::new(move || kill.cancel());
    if !rest.is_empty() {
        // The channel is new, and the process is held.
        drop(driver.output.try_send(rest));
    }
    spawn(drive(running, driver, output, input, killed));
    Ok(process)
}

async fn create(engine: &Engine, container: &str, dir: &str, cmd: Vec<String>, env: Vec<String>) -> Result<String> {
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        env: Some(env),
        cmd: Some(cmd),
        working_dir: Some(dir.to_owned()),
        ..CreateExecOptions::default()
    };
    let created = engine.docker().create_exec(container, options).await;
    Ok(created.map_err(|e| engine.failed("start a program", e))?.id)
}

async fn attach(engine: &Engine, exec: &str) -> Result<(Output, Input)> {
    let started = engine.docker().start_exec(exec, None::<StartExecOptions>).await;
    match started.map_err(|e| engine.failed("start a program", e))? {
        StartExecResults::Attached { output, input } => Ok((output, input)),
        StartExecResults::Detached => Err(Error::tool("the engine gives no output of the program")),
    }
}

async fn drive(running: Running, driver: Driver, output: Output, input: Input, killed: CancellationToken) {
    let Driver { output: read, input: written, exit } = driver;
    let feeding = spawn(feed(written, input));
    spawn(pass(output, read, killed.clone()));
    let ended = tokio::select! {
        ended = running.ended() => ended,
        () = killed.cancelled() => {
            running.kill_all().await;
            timeout(LONGEST, running.ended()).await.ok().flatten()
        }
    };
    // A shell that was killed itself has killed nothing.
    if ended.is_none_or(|exit| exit == Exit::code(KILLED)) {
        running.kill_all().await;
    }
    feeding.abort();
    if let Some(ended) = ended {
        // Nobody may wait for it any more.
        let _ = exit.send(ended);
    }
}

/// Passes output on as fast as it is read. What was killed is read to its end all the same: an engine waits for that.
async fn pass(mut output: Output, read: mpsc::Sender<Bytes>, killed: CancellationToken) {
    while let Some(Ok(piece)) = output.next().await {
        tokio::select! {
            biased;
            () = killed.cancelled() => {}
            // Who has dropped the process has killed it.
            _ = read.send(piece.into_bytes()) => {}
        }
    }
}

async fn feed(mut from: mpsc::Receiver<Bytes>, mut input: Input) {
    while let Some(bytes) = from.recv().await
        && input.write_all(&bytes).await.is_ok()
        && input.flush().await.is_ok()
    {}
    // One that has ended reads no more.
    let _ = input.shutdown().await;
}

impl Running {
    /// How it ended, as soon as the engine says so. None if the engine has lost it.
    async fn ended(&self) -> Option<Exit> {
        let [mut pause, longest] = PAUSES;
        loop {
            sleep(pause).await;
            let found = self.engine.docker().inspect_exec(&self.exec).await.ok()?;
            if found.running == Some(false) {
                return i32::try_from(found.exit_code?).ok().map(Exit::code);
            }
            pause = (pause * 2).min(longest);
        }
    }

    /// Kills the command's processes. If no program can be started for that, since they leave no room for one, the container ends: better than that they
    /// go on.
    async fn kill_all(&self) {
        for _ in 0..KILLS {
            match timeout(LONGEST, self.try_kill()).await {
                Ok(Some(true)) => return,
                Ok(Some(false)) | Err(_) => sleep(PAUSES[1]).await,
                // Paused, or gone.
                Ok(None) => return,
            }
        }
        // One that has ended has killed all.
        drop(self.engine.docker().kill_container(&self.container, None).await);
    }

    /// None if the container takes no programs.
    async fn try_kill(&self) -> Option<bool> {
        let cmd = ["sh", "-c", KILL, "sh", &self.mark].map(str::to_owned).into();
        let exec = create(&self.engine, &self.container, "/", cmd, Vec::new()).await.ok()?;
        let Ok((mut output, input)) = attach(&self.engine, &exec).await else { return Some(false) };
        drop(input);
        while output.next().await.is_some() {}
        let kill = Self { exec, ..self.clone() };
        Some(kill.ended().await.is_some_and(|exit| exit.is_success()))
    }
}
