//! Events of a team: changes of its state, and events of its members' runs, in one stream.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use agent_core::{Event, EventStream};
use futures::{Stream, StreamExt, stream::SelectAll};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::{
    board::Task,
    command::{Command, Outcome, Reply, TeamEntry},
    end::TeamEndReason,
    mail::{Actor, TeamMessage},
    member::{LEADER, TurnEnd},
};

/// An event of a team, with the member that it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TeamEvent {
    /// Sequence number of a change in the team's session; `None` for an event of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Id of the member; `None` for an event of the team itself or of the user.
    pub member: Option<Arc<str>>,
    /// Content of the event.
    pub kind: TeamEventKind,
}

/// Content of a [`TeamEvent`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TeamEventKind {
    /// An event of the member's run.
    Run(Box<Event>),
    /// A change of the team's state.
    Change(TeamChange),
}

/// A change of a team's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TeamChange {
    /// A run of the team started.
    Started {
        /// Id of the run.
        run: Arc<str>,
    },
    /// A member was added.
    Spawned {
        /// Id of the member.
        member: Arc<str>,
    },
    /// A member was removed.
    Removed {
        /// Id of the member.
        member: Arc<str>,
    },
    /// A task was created or changed.
    Task {
        /// The changed task.
        task: Box<Task>,
        /// Author of the change.
        by: Actor,
    },
    /// A message was sent.
    Sent {
        /// The message.
        message: TeamMessage,
    },
    /// A turn began.
    TurnBegan {
        /// Id of the member.
        member: Arc<str>,
        /// Id of the turn's run.
        run: Arc<str>,
        /// Numbers of the delivered messages.
        messages: Vec<u64>,
    },
    /// A turn was suspended: its run waits for answers.
    TurnSuspended {
        /// Id of the member.
        member: Arc<str>,
        /// Ids of the questions.
        questions: Vec<String>,
    },
    /// A question was answered.
    Answered {
        /// Id of the member that asked.
        member: Arc<str>,
        /// Id of the question.
        question: String,
    },
    /// A turn ended.
    TurnEnded {
        /// Id of the member.
        member: Arc<str>,
        /// End of the turn.
        end: TurnEnd,
    },
    /// The run of the team ended.
    Ended {
        /// Reason of the end.
        reason: TeamEndReason,
    },
}

impl TeamChange {
    /// The change that a command made; `None` for bookkeeping that nobody watches, and for the end of
    /// the run, which may follow from any command.
    pub(crate) fn of(entry: &TeamEntry, outcome: &Outcome) -> Option<Self> {
        let reply = outcome.as_ref().ok()?;
        Some(match (&entry.command, reply) {
            (Command::Start { run, .. }, _) => Self::Started { run: run.clone() },
            (_, Reply::Spawned(member)) => Self::Spawned { member: member.clone() },
            (Command::Remove { member }, _) => Self::Removed { member: member.clone() },
            (_, Reply::Task(task)) => Self::Task { task: task.clone(), by: entry.by.clone() },
            (Command::Message { parts, .. } | Command::Broadcast { parts }, Reply::Sent(number, to)) => {
                let broadcast = matches!(entry.command, Command::Broadcast { .. });
                let (from, parts) = (entry.by.clone(), parts.clone());
                let message = TeamMessage { number: *number, from, to: to.clone(), broadcast, parts, time: entry.time };
                Self::Sent { message }
            }
            (Command::BeginTurn { member } | Command::BeginPart { member, .. }, Reply::Turn(turn)) => {
                let messages = turn.messages.iter().map(|message| message.number).collect();
                Self::TurnBegan { member: member.clone(), run: turn.run.clone(), messages }
            }
            (Command::SuspendTurn { member, questions, .. }, _) => {
                let questions = questions.iter().map(|question| question.id.clone()).collect();
                Self::TurnSuspended { member: member.clone(), questions }
            }
            (Command::Answer { member, question, .. }, _) => {
                Self::Answered { member: member.clone(), question: question.clone() }
            }
            (Command::EndTurn { member, end, .. }, _) => Self::TurnEnded { member: member.clone(), end: end.clone() },
            _ => return None,
        })
    }

    /// The member that the change belongs to.
    pub(crate) fn member(&self) -> Option<Arc<str>> {
        match self {
            Self::Spawned { .. } | Self::Removed { .. } => Some(LEADER.into()),
            Self::Task { by, .. } => by.member().cloned(),
            Self::Sent { message } => message.from.member().cloned(),
            Self::TurnBegan { member, .. }
            | Self::TurnSuspended { member, .. }
            | Self::Answered { member, .. }
            | Self::TurnEnded { member, .. } => Some(member.clone()),
            Self::Started { .. } | Self::Ended { .. } => None,
        }
    }
}

/// Item for a watcher: a change, or the events of a turn that began.
enum News {
    Change(u64, TeamChange),
    Turn(Arc<str>, EventStream),
}

type OpenTurn = Box<dyn Fn() -> EventStream + Send>;

/// The readers of a team's events. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Watchers(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    readers: Vec<mpsc::UnboundedSender<News>>,
    /// Turns that are running, for readers that subscribe now.
    turns: Vec<(Arc<str>, OpenTurn)>,
    is_closed: bool,
}

impl Watchers {
    pub(crate) fn has_any(&self) -> bool {
        !self.lock().readers.is_empty()
    }

    pub(crate) fn publish(&self, seq: u64, change: &TeamChange) {
        self.lock().readers.retain(|reader| reader.send(News::Change(seq, change.clone())).is_ok());
    }

    /// Announces a turn, whose events `open` returns.
    pub(crate) fn turn_began(&self, member: &Arc<str>, open: impl Fn() -> EventStream + Send + 'static) {
        let mut inner = self.lock();
        inner.readers.retain(|reader| reader.send(News::Turn(member.clone(), open())).is_ok());
        inner.turns.push((member.clone(), Box::new(open)));
    }

    pub(crate) fn turn_ended(&self, member: &str) {
        self.lock().turns.retain(|(running, _)| **running != *member);
    }

    /// Ends all streams once they have yielded what was published.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        (inner.readers, inner.turns, inner.is_closed) = (Vec::new(), Vec::new(), true);
    }

    pub(crate) fn subscribe(&self) -> TeamEvents {
        let (sender, news) = mpsc::unbounded_channel();
        let mut inner = self.lock();
        let mut turns = SelectAll::new();
        for (member, open) in &inner.turns {
            turns.push(of_member(member.clone(), open()));
        }
        if !inner.is_closed {
            inner.readers.push(sender);
        }
        TeamEvents { news, turns, ready: VecDeque::new() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type MemberEvents = Pin<Box<dyn Stream<Item = TeamEvent> + Send>>;

fn of_member(member: Arc<str>, events: EventStream) -> MemberEvents {
    let wrap =
        move |event| TeamEvent { seq: None, member: Some(member.clone()), kind: TeamEventKind::Run(Box::new(event)) };
    Box::pin(events.map(wrap))
}

/// Stream of a team's events, from the time of its subscription: changes of the team, and all events of
/// the turns that are running or begin later. The events of one member are in order.
pub struct TeamEvents {
    news: mpsc::UnboundedReceiver<News>,
    turns: SelectAll<MemberEvents>,
    ready: VecDeque<TeamEvent>,
}

impl Stream for TeamEvents {
    type Item = TeamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TeamEvent>> {
        let this = &mut *self;
        let is_closed = loop {
            match this.news.poll_recv(cx) {
                Poll::Ready(Some(News::Change(seq, change))) => {
                    let event =
                        TeamEvent { seq: Some(seq), member: change.member(), kind: TeamEventKind::Change(change) };
                    this.ready.push_back(event);
                }
                Poll::Ready(Some(News::Turn(member, events))) => this.turns.push(of_member(member, events)),
                Poll::Ready(None) => break true,
                Poll::Pending => break false,
            }
        };
        if let Some(event) = this.ready.pop_front() {
            return Poll::Ready(Some(event));
        }
        match this.turns.poll_next_unpin(cx) {
            Poll::Ready(Some(event)) => Poll::Ready(Some(event)),
            Poll::Ready(None) if is_closed => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }
}

impl fmt::Debug for TeamEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TeamEvents").field("turns", &self.turns.len()).finish_non_exhaustive()
    }
}
