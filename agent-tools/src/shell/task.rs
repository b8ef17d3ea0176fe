//! [`Tasks`]: commands in the background.

use std::{
    collections::BTreeMap,
    mem,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use agent_core::{Error, Result, RunCx, run::new_id};
use tokio::{sync::Notify, time::timeout};

use super::{Shell, transcript::Transcript};
use crate::sandbox::{Command, Exit, Input, Process};

/// How long a program is given to take its input.
const PATIENCE: Duration = Duration::from_secs(5);

/// Commands in the background, by session and name. Dropped, all of them end.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<ByName>);

/// Names are those within a session. None is a place that is taken for a command that is about to start.
type ByName = BTreeMap<(Arc<str>, String), Option<Arc<Task>>>;

/// One of them.
#[derive(Debug)]
pub(super) struct Task {
    state: Mutex<State>,
    /// Something was written, or it ended.
    news: Notify,
    /// None once its input has ended.
    input: tokio::sync::Mutex<Option<Input>>,
    /// Somebody wants it to end.
    kill: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    /// What nobody has read yet.
    unread: Transcript,
    /// How it ended; the inner one is none if that is not known.
    ended: Option<Option<Exit>>,
}

impl Tasks {
    /// Starts a command, and gives its name.
    pub(super) async fn start(&self, shell: &Shell, command: Command, cx: &RunCx) -> Result<String> {
        let key = self.reserve(shell.limits.tasks, cx)?;
        match shell.sandbox.start(command).await {
            Ok(process) => {
                self.lock().insert(key.clone(), Some(Task::run(process, shell.limits.output)));
                Ok(key.1)
            }
            Err(e) => {
                self.lock().remove(&key);
                Err(e)
            }
        }
    }

    /// A new name in the run's session, of which no more than `most` are taken.
    fn reserve(&self, most: usize, cx: &RunCx) -> Result<(Arc<str>, String)> {
        let session = cx.ids().session.clone();
        let mut tasks = self.lock();
        let taken = tasks.keys().filter(|(of, _)| *of == session).count();
        if taken >= most {
            let what = "end one with kill_bash, or read one that has ended with bash_output";
            return Err(Error::tool(format!("there are {taken} commands in the background already: {what}")));
        }
        // A name is never used again, not even after a restart: a model may remember it.
        let id = new_id();
        let key = (session, format!("bash_{}", &id[id.len() - 8..]));
        tasks.insert(key.clone(), None);
        Ok(key)
    }

    /// The one of this name in the run's session.
    pub(super) fn find(&self, name: &str, cx: &RunCx) -> Result<Arc<Task>> {
        let session = &cx.ids().session;
        let tasks = self.lock();
        tasks.get(&(session.clone(), name.to_owned())).cloned().flatten().ok_or_else(|| {
            let mine = tasks.keys().filter(|(of, _)| of == session).map(|(_, name)| name.as_str());
            let there_are = match mine.collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "there is none".to_owned(),
                names => format!("there are {names}"),
            };
            let why = "They end with the application that started them";
            Error::tool(format!("no command in the background is called '{name}': {there_are}. {why}"))
        })
    }

    /// Forgets one that has ended and was read to its end.
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

impl Task {
    fn run(mut process: Process, most: usize) -> Arc<Self> {
        let (input, kill) = (process.take_input(), Arc::new(Notify::new()));
        let state = State { unread: Transcript::new(most, most), ended: None };
        let task = Self { state: Mutex::new(state), news: Notify::new(), input: tokio::sync::Mutex::new(input), kill };
        let task = Arc::new(task);
        // The program ends when nobody can ask for it any more, too.
        tokio::spawn(drive(process, task.kill.clone(), Arc::downgrade(&task)));
        task
    }

    /// Waits until it has written something or ended, for a while.
    pub(super) async fn news(&self, longest: Duration) {
        self.wait(longest, |state| state.ended.is_some() || !state.unread.is_empty()).await;
    }

    /// Waits until it has ended, for a while.
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
        // It is not over in time: the caller sees what there is.
        drop(timeout(longest, over).await);
    }

    /// What was written since the last time, and how it ended.
    pub(super) fn read(&self) -> (String, Option<Option<Exit>>) {
        let mut state = self.lock();
        (state.unread.take().shown(None), state.ended)
    }

    /// Gives it input, and then ends that if `is_all`.
    ///
    /// # Errors
    /// If it reads no more, or not in time.
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

/// Moves a program's output to its task, until it has ended, or was killed, or nobody can ask for it any more.
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
    // It may have closed its output, and go on.
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
