//! Execution of a program in a container.

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

/// Timeout for starting a program, and for killing its remaining processes.
const LONGEST: Duration = Duration::from_secs(30);

/// Initial and maximum interval of polling whether a program runs.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];

/// Number of attempts to kill a command's processes.
const KILLS: u32 = 4;

/// Exit code of a killed program.
const KILLED: i32 = 137;

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;
type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// Running program of a container, with its descendants.
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
        // The channel is new and has capacity.
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
    // If the wrapper shell was killed itself, it killed no descendants.
    if ended.is_none_or(|exit| exit == Exit::code(KILLED)) {
        running.kill_all().await;
    }
    feeding.abort();
    if let Some(ended) = ended {
        // The receiver may be gone.
        let _ = exit.send(ended);
    }
}

/// Forwards output with back-pressure. The output of a killed program is drained, since the engine
/// waits for that.
async fn pass(mut output: Output, read: mpsc::Sender<Bytes>, killed: CancellationToken) {
    while let Some(Ok(piece)) = output.next().await {
        tokio::select! {
            biased;
            () = killed.cancelled() => {}
            // Dropping the process has killed the program.
            _ = read.send(piece.into_bytes()) => {}
        }
    }
}

async fn feed(mut from: mpsc::Receiver<Bytes>, mut input: Input) {
    while let Some(bytes) = from.recv().await
        && input.write_all(&bytes).await.is_ok()
        && input.flush().await.is_ok()
    {}
    // A program that has exited reads no more.
    let _ = input.shutdown().await;
}

impl Running {
    /// Returns the exit status as soon as the engine reports it. `None` if the engine lost the
    /// program.
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

    /// Kills the command's processes. If no program can be started for that, since they have used
    /// up the process limit, the container is killed, which is better than leaving them running.
    async fn kill_all(&self) {
        for _ in 0..KILLS {
            match timeout(LONGEST, self.try_kill()).await {
                Ok(Some(true)) => return,
                Ok(Some(false)) | Err(_) => sleep(PAUSES[1]).await,
                // Paused, or gone.
                Ok(None) => return,
            }
        }
        // A stopped container has no processes.
        drop(self.engine.docker().kill_container(&self.container, None).await);
    }

    /// Returns `None` if the container cannot start programs.
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
