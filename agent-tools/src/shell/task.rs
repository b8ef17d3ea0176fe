//! [`Tasks`]: background commands.

use std::{
    collections::BTreeMap,
    mem,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use agent_core::{Error, Result, RunCx, run::new_id};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use super::{Shell, transcript::Transcript};
use crate::sandbox::{Command, Exit, Input, Process};

/// Timeout for a program to read its input.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time without a question after which a command is ended when another one starts.
const IDLE: Duration = Duration::from_secs(3600);

/// Maximum number of commands of all sessions.
const MOST: usize = 256;

/// Commands in the background, by session and name. Dropped, all of them end.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<ByName>);

/// Names are unique within a session. `None` reserves a name for a command that is about to start.
type ByName = BTreeMap<(Arc<str>, String), Option<Arc<Task>>>;

/// Background command.
#[derive(Debug)]
pub(super) struct Task {
    state: Mutex<State>,
    /// Notified of new output, and of the end.
    news: Notify,
    /// `None` once the input is closed.
    input: tokio::sync::Mutex<Option<Input>>,
    /// Notified to kill the command.
    kill: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    /// Output that was not read yet.
    unread: Transcript,
    /// Exit status, once the command has ended; the inner `None` if it is unknown.
    ended: Option<Option<Exit>>,
    /// When somebody last asked about it.
    touched: Instant,
}

impl Tasks {
    /// Starts a command, and returns its name.
    pub(super) async fn start(&self, shell: &Shell, command: Command, cx: &RunCx) -> Result<String> {
        let place = Place { key: self.reserve(shell.limits.tasks, cx)?, tasks: self };
        let process = shell.sandbox.start(command).await?;
        self.lock().insert(place.key.clone(), Some(Task::run(process, shell.limits.output)));
        Ok(place.key.1.clone())
    }

    /// Ends commands that nobody asked about for long, and the one that was longest without a question if there are too many.
    fn make_room(tasks: &mut ByName) {
        let touched = |task: &Option<Arc<Task>>| task.as_ref().map(|task| task.lock().touched);
        let end = |task: Option<Option<Arc<Task>>>| task.flatten().into_iter().for_each(|task| task.kill());
        let idle = |task: &Option<Arc<Task>>| touched(task).is_some_and(|touched| touched.elapsed() >= IDLE);
        let idle: Vec<_> = tasks.iter().filter(|(_, task)| idle(task)).map(|(key, _)| key.clone()).collect();
        idle.iter().for_each(|key| end(tasks.remove(key)));
        while tasks.len() >= MOST {
            let oldest = tasks.iter().filter_map(|(key, task)| Some((touched(task)?, key.clone()))).min();
            let Some((_, key)) = oldest else { return };
            end(tasks.remove(&key));
        }
    }

    /// Reserves a new name in the run's session, which may have at most `most`.
    fn reserve(&self, most: usize, cx: &RunCx) -> Result<(Arc<str>, String)> {
        let session = cx.ids().session.clone();
        let mut tasks = self.lock();
        Self::make_room(&mut tasks);
        let taken = tasks.keys().filter(|(of, _)| *of == session).count();
        if taken >= most {
            let what = "end one with kill_bash, or read one that has ended with bash_output";
            return Err(Error::tool(format!("there are {taken} commands in the background already: {what}")));
        }
        // A name is never reused, not even after a restart: a model may remember it.
        let id = new_id();
        let key = (session, format!("bash_{}", &id[id.len() - 8..]));
        tasks.insert(key.clone(), None);
        Ok(key)
    }

    /// Returns the command of this name in the run's session.
    pub(super) fn find(&self, name: &str, cx: &RunCx) -> Result<Arc<Task>> {
        let session = &cx.ids().session;
        let tasks = self.lock();
        let found = tasks.get(&(session.clone(), name.to_owned())).cloned().flatten();
        found.inspect(|task| task.lock().touched = Instant::now()).ok_or_else(|| {
            let mine = tasks.keys().filter(|(of, _)| of == session).map(|(_, name)| name.as_str());
            let there_are = match mine.collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "there is none".to_owned(),
                names => format!("there are {names}"),
            };
            let why = "They end with the application that started them";
            Error::tool(format!("no command in the background is called '{name}': {there_are}. {why}"))
        })
    }

    /// Removes a command that has ended and was read completely.
    pub(super) fn forget(&self, name: &str, cx: &RunCx) {
        self.lock().remove(&(cx.ids().session.clone(), name.to_owned()));
    }

    pub(super) fn end_all(&self) {
        for task in mem::take(&mut *self.lock()).into_values().flatten() {
            task.kill();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ByName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Place reserved for a command that is about to start. It is released if the start fails or is cancelled.
struct Place<'a> {
    tasks: &'a Tasks,
    key: (Arc<str>, String),
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut tasks = self.tasks.lock();
        if matches!(tasks.get(&self.key), Some(None)) {
            tasks.remove(&self.key);
        }
    }
}

impl Task {
    fn run(mut process: Process, most: usize) -> Arc<Self> {
        let (input, kill) = (process.take_input(), Arc::new(Notify::new()));
        let state = State { unread: Transcript::new(most, most), ended: None, touched: Instant::now() };
        let task = Self { state: Mutex::new(state), news: Notify::new(), input: tokio::sync::Mutex::new(input), kill };
        let task = Arc::new(task);
        // The program also ends when nothing refers to its task any more.
        tokio::spawn(drive(process, task.kill.clone(), Arc::downgrade(&task)));
        task
    }

    /// Waits for new output or the end, up to a timeout.
    pub(super) async fn news(&self, longest: Duration) {
        self.wait(longest, |state| state.ended.is_some() || !state.unread.is_empty()).await;
    }

    /// Waits for the end, up to a timeout.
    pub(super) async fn end(&self, longest: Duration) {
        self.wait(longest, |state| state.ended.is_some()).await;
    }

    async fn wait(&self, longest: Duration, is_over: impl Fn(&State) -> bool) {
        let over = async {
            loop {
                let mut next = pin!(self.news.notified());
                next.as_mut().enable();
                if is_over(&self.lock()) {
                    return;
                }
                next.await;
            }
        };
        // After the timeout, the caller uses the output so far.
        drop(timeout(longest, over).await);
    }

    /// Returns the output since the last call, and the exit status.
    pub(super) fn read(&self) -> (String, Option<Option<Exit>>) {
        let mut state = self.lock();
        (state.unread.take().shown(None), state.ended)
    }

    /// Writes input, and closes the input if `is_all`.
    ///
    /// # Errors
    /// If the program no longer reads, or not in time.
    pub(super) async fn write(&self, text: String, is_all: bool) -> Result<()> {
        let mut input = self.input.lock().await;
        let open = input.as_ref().ok_or_else(|| Error::tool("its input has ended"))?;
        let late = |_| Error::tool("the command does not read its input: nothing of this was written");
        timeout(PATIENCE, open.write(text)).await.map_err(late)??;
        if is_all {
            *input = None;
        }
        Ok(())
    }

    pub(super) fn kill(&self) {
        self.kill.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forwards a program's output to its task, until the program has ended, was killed, or nothing
/// refers to the task any more.
async fn drive(mut process: Process, kill: Arc<Notify>, task: Weak<Task>) {
    loop {
        let piece = tokio::select! {
            piece = process.output() => piece,
            () = kill.notified() => {
                process.kill();
                continue;
            }
        };
        let Some(task) = task.upgrade() else { return };
        let Some(piece) = piece else { break };
        task.lock().unread.push(&piece);
        task.news.notify_waiters();
    }
    // The program may have closed its output, and continue.
    let exit = loop {
        tokio::select! {
            exit = process.exit() => break exit.ok(),
            () = kill.notified() => process.kill(),
        }
    };
    if let Some(task) = task.upgrade() {
        task.lock().ended = Some(exit);
        task.news.notify_waiters();
    }
}
