//! [`Tasks`]: commands in the background.

use std::{
    collections::BTreeMap,
    mem,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use agent_core::{Error, Result, RunCx};
use bytes::Bytes;
use tokio::{
    sync::{Notify, mpsc},
    time::timeout,
};

use super::{Shell, transcript::Transcript};
use crate::sandbox::{Command, Exit, Process};

/// Pieces of input that wait for a program to read them.
const INPUTS: usize = 16;

/// Commands in the background, by session and name. Dropped, all of them end.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    by_name: Mutex<ByName>,
    last: AtomicU64,
}

/// Names are those within a session.
type ByName = BTreeMap<(Arc<str>, String), Arc<Task>>;

/// One of them.
#[derive(Debug)]
pub(super) struct Task {
    state: Mutex<State>,
    /// Something was written, or it ended.
    news: Notify,
    orders: mpsc::Sender<Order>,
    /// The most bytes that are shown at once.
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    /// What nobody has read yet.
    unread: Transcript,
    /// How it ended; the inner one is none if that is not known.
    ended: Option<Option<Exit>>,
}

#[derive(Debug)]
pub(super) enum Order {
    Write(String),
    CloseInput,
    Kill,
}

impl Tasks {
    /// Starts a command, and gives its name.
    pub(super) async fn start(&self, shell: &Shell, command: Command, cx: &RunCx) -> Result<String> {
        let session = cx.ids().session.clone();
        let running = self.lock().iter().filter(|((of, _), task)| *of == session && task.is_running()).count();
        if running >= shell.limits.tasks {
            return Err(Error::tool(format!(
                "{running} commands run in the background already: end one with kill_bash"
            )));
        }
        let process = shell.sandbox.start(command).await?;
        let (orders, given) = mpsc::channel(INPUTS);
        let (state, news) = (Mutex::default(), Notify::new());
        let task = Arc::new(Task { state, news, orders, most: shell.limits.output });
        // It ends when nobody holds the sender of its orders any more.
        tokio::spawn(drive(process, given, Arc::downgrade(&task)));
        let name = format!("bash_{}", self.last.fetch_add(1, Ordering::Relaxed) + 1);
        self.lock().insert((session, name.clone()), task);
        Ok(name)
    }

    /// The one of this name in the run's session.
    pub(super) fn find(&self, name: &str, cx: &RunCx) -> Result<Arc<Task>> {
        let session = &cx.ids().session;
        let tasks = self.lock();
        tasks.get(&(session.clone(), name.to_owned())).cloned().ok_or_else(|| {
            let mine = tasks.keys().filter(|(of, _)| of == session).map(|(_, name)| name.as_str());
            let there_are = match mine.collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "there is none".to_owned(),
                names => format!("there are {names}"),
            };
            Error::tool(format!("no command in the background is called '{name}': {there_are}. They end with the application that started them"))
        })
    }

    /// Forgets one that has ended and was read to its end.
    pub(super) fn forget(&self, name: &str, cx: &RunCx) {
        self.lock().remove(&(cx.ids().session.clone(), name.to_owned()));
    }

    pub(super) fn end_all(&self) {
        mem::take(&mut *self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, ByName> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
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
        (mem::take(&mut state.unread).shown(self.most, None), state.ended)
    }

    /// Tells it something.
    ///
    /// # Errors
    /// If it has ended.
    pub(super) async fn order(&self, order: Order) -> Result<()> {
        self.orders.send(order).await.map_err(|_| Error::tool("the command has ended"))
    }

    fn is_running(&self) -> bool {
        self.lock().ended.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves a program's output to its task and orders to the program, until it has ended or nobody can ask for it any more.
async fn drive(mut process: Process, mut orders: mpsc::Receiver<Order>, task: Weak<Task>) {
    let mut has_output = true;
    loop {
        tokio::select! {
            next = next(&mut process, has_output) => {
                let Some(task) = task.upgrade() else { return };
                let mut state = task.lock();
                match next {
                    Next::Output(piece) => state.unread.push(&piece, task.most),
                    Next::NoMore => has_output = false,
                    Next::Ended(exit) => state.ended = Some(exit),
                }
                let is_over = state.ended.is_some();
                drop(state);
                task.news.notify_waiters();
                if is_over {
                    return;
                }
            }
            order = orders.recv() => match order {
                // A program that reads nothing must not keep its output from being read; one that has ended is about to say so.
                Some(Order::Write(text)) => drop(timeout(PATIENCE, process.write(text)).await),
                Some(Order::CloseInput) => process.close_input(),
                Some(Order::Kill) => process.kill(),
                None => return,
            },
        }
    }
}

enum Next {
    Output(Bytes),
    NoMore,
    Ended(Option<Exit>),
}

async fn next(process: &mut Process, has_output: bool) -> Next {
    if has_output {
        process.output().await.map_or(Next::NoMore, Next::Output)
    } else {
        Next::Ended(process.exit().await.ok())
    }
}

/// How long a program is given to take its input.
const PATIENCE: Duration = Duration::from_secs(1);
