//! Connection of a relay: listens for batches and subscriptions, and sends notifications.

use std::{collections::HashMap, fmt::Write, sync::Arc, time::Duration};

use agent_core::Result;
use agent_dispatch::{ChunkRelay, RunAddress};
use futures::{Stream, StreamExt};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_postgres::{AsyncMessage, Client, Notification, types::Type};

use super::{
    State, topic,
    wire::{Assembly, PAYLOAD},
};
use crate::postgres::{
    connect::Location,
    error::{lost_connection, store_error},
};

/// Pause before a lost connection is reopened.
const PAUSE: Duration = Duration::from_millis(500);
/// Interval at which subscriptions are announced again.
const REPEAT: Duration = Duration::from_secs(10);
/// Maximum number of commands that are executed together.
const TOGETHER: usize = 256;
/// Prefix of channel names, before a topic.
const CHANNEL: &str = "agent_relay_";
/// Number of digits of a topic.
const DIGITS: usize = 32;

/// Sends several notifications in one transaction.
const NOTIFY: &str = "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS n(channel, payload)";

/// Work for the connection.
pub(super) enum Command {
    /// Subscribe to a run.
    Listen { topic: String, run: RunAddress },
    /// Send the payloads of a batch.
    Notify { topic: String, payloads: Vec<String> },
}

/// Kind of an announcement, its first character.
mod kind {
    /// Subscriptions have begun.
    pub(super) const NEW: &str = "+";
    /// Subscriptions continue.
    pub(super) const STILL: &str = "=";
    /// A publisher connected: subscriptions are to be announced.
    pub(super) const ASK: &str = "?";
}

/// Owner of the connection and its subscriptions.
pub(super) struct Driver {
    location: Location,
    /// Channel of announcements.
    announcements: String,
    state: Arc<State>,
    /// Runs that this process subscribed to, by topic.
    subscriptions: HashMap<String, (RunAddress, Assembly)>,
    open: Option<Session>,
}

/// Connection to the database.
struct Session {
    client: Client,
    /// Closed once the connection is lost.
    notifications: mpsc::UnboundedReceiver<Notification>,
    _reading: JoinSet<()>,
}

impl Session {
    async fn open(location: &Location) -> Result<Self> {
        let (client, messages) = location.session().await?;
        let (sender, notifications) = mpsc::unbounded_channel();
        let mut reading = JoinSet::new();
        drop(reading.spawn(read(messages, sender)));
        Ok(Self { client, notifications, _reading: reading })
    }

    async fn execute(&self, statements: &str) -> Result<()> {
        self.client.batch_execute(statements).await.map_err(|e| store_error(&e))
    }

    /// Sends payloads to channels, in one transaction.
    async fn notify(&self, notes: Vec<(String, String)>) -> Result<()> {
        if notes.is_empty() {
            return Ok(());
        }
        let (channels, payloads): (Vec<_>, Vec<_>) = notes.into_iter().unzip();
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&channels, Type::TEXT_ARRAY), (&payloads, Type::TEXT_ARRAY)];
        self.client.query_typed(NOTIFY, &values).await.map(drop).map_err(|e| store_error(&e))
    }
}

/// Drives a connection until it is lost, and forwards its notifications.
async fn read(
    messages: impl Stream<Item = Result<AsyncMessage, tokio_postgres::Error>>,
    sender: mpsc::UnboundedSender<Notification>,
) {
    let mut messages = std::pin::pin!(messages);
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(notification) = message
            && sender.send(notification).is_err()
        {
            return;
        }
    }
}

impl Driver {
    /// Opens the first connection.
    pub(super) async fn connect(location: Location, schema: &str, state: Arc<State>) -> Result<Self> {
        // No run has this address.
        let announcements = format!("{CHANNEL}{}", topic(schema, &RunAddress::new("", "", "")));
        let open = Some(Session::open(&location).await?);
        Ok(Self { location, announcements, state, subscriptions: HashMap::new(), open })
    }

    /// Executes commands until the relay is dropped.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            let opened = match self.open.take() {
                Some(open) => Ok(open),
                None => Session::open(&self.location).await,
            };
            let served = match opened {
                Ok(session) => self.serve(session, &mut commands).await,
                Err(e) => Err(e),
            };
            match served {
                Ok(()) => return,
                Err(e) => tracing::warn!(error = %e, "the relay has no connection to the database; trying again"),
            }
            sleep(PAUSE).await;
            // Batches from before the interruption are of no use any more.
            while let Ok(command) = commands.try_recv() {
                if let Command::Listen { topic, run } = command {
                    self.subscribe(topic, run);
                }
            }
            if commands.is_closed() {
                return;
            }
        }
    }

    /// Executes commands over one connection; returns once the relay is dropped.
    async fn serve(&mut self, mut session: Session, commands: &mut mpsc::Receiver<Command>) -> Result<()> {
        session.execute(&self.begin()).await?;
        let mut notes = self.announce(kind::NEW, self.subscriptions.keys());
        notes.push((self.announcements.clone(), kind::ASK.to_owned()));
        session.notify(notes).await?;
        let mut repeat = interval(REPEAT);
        repeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        repeat.reset();
        loop {
            let mut ready = Vec::new();
            tokio::select! {
                notification = session.notifications.recv() => {
                    let notification = notification.ok_or_else(lost_connection)?;
                    session.notify(self.notified(&notification)).await?;
                }
                count = commands.recv_many(&mut ready, TOGETHER) => match count {
                    0 => return Ok(()),
                    _ => self.execute(&session, ready).await?,
                },
                _ = repeat.tick() => self.repeat(&session).await?,
            }
        }
    }

    fn subscribe(&mut self, topic: String, run: RunAddress) {
        self.subscriptions.entry(topic).or_insert_with(|| (run, Assembly::default()));
    }

    /// Returns the statements that begin a session.
    fn begin(&self) -> String {
        // A notification needs no disk.
        let mut begin = format!("SET synchronous_commit TO off; LISTEN {};", self.announcements);
        for topic in self.subscriptions.keys() {
            let _ = write!(begin, "LISTEN {CHANNEL}{topic};"); // a text takes everything
        }
        begin
    }

    async fn execute(&mut self, session: &Session, commands: Vec<Command>) -> Result<()> {
        let (mut listens, mut new, mut notes) = (String::new(), Vec::new(), Vec::new());
        for command in commands {
            match command {
                Command::Listen { topic, run } => {
                    let _ = write!(listens, "LISTEN {CHANNEL}{topic};"); // a text takes everything
                    new.push(topic.clone());
                    self.subscribe(topic, run);
                }
                Command::Notify { topic, payloads } => {
                    notes.extend(payloads.into_iter().map(|payload| (format!("{CHANNEL}{topic}"), payload)));
                }
            }
        }
        if !new.is_empty() {
            // This connection must listen before publishers send.
            session.execute(&listens).await?;
            notes.extend(self.announce(kind::NEW, &new));
        }
        session.notify(notes).await
    }

    /// Announces the subscriptions again, and ends those that nobody here uses.
    async fn repeat(&mut self, session: &Session) -> Result<()> {
        self.state.interest.prune();
        let local = &self.state.local;
        let ended = self.subscriptions.extract_if(|_, (run, _)| !local.is_watched(run));
        let unlisten: String = ended.map(|(topic, _)| format!("UNLISTEN {CHANNEL}{topic};")).collect();
        if !unlisten.is_empty() {
            session.execute(&unlisten).await?;
        }
        session.notify(self.announce(kind::STILL, self.subscriptions.keys())).await
    }

    /// Returns the payloads that announce these topics.
    fn announce<'a>(&self, kind: &str, topics: impl IntoIterator<Item = &'a String>) -> Vec<(String, String)> {
        let topics: Vec<_> = topics.into_iter().map(String::as_str).collect();
        let together = topics.chunks((PAYLOAD - 1) / DIGITS);
        together.map(|topics| (self.announcements.clone(), format!("{kind}{}", topics.concat()))).collect()
    }

    /// Handles a notification. Returns the announcements to send.
    fn notified(&mut self, notification: &Notification) -> Vec<(String, String)> {
        let (channel, payload) = (notification.channel(), notification.payload());
        if channel == self.announcements {
            return self.announced(payload);
        }
        let subscription = channel.strip_prefix(CHANNEL).and_then(|topic| self.subscriptions.get_mut(topic));
        if let Some((run, assembly)) = subscription
            && let Some(batch) = assembly.add(payload)
        {
            self.state.local.publish(run, batch);
        }
        Vec::new()
    }

    fn announced(&self, payload: &str) -> Vec<(String, String)> {
        if payload == kind::ASK {
            return self.announce(kind::STILL, self.subscriptions.keys());
        }
        let Some((said, mut rest)) = payload.split_at_checked(1) else { return Vec::new() };
        while let Some((topic, after)) = rest.split_at_checked(DIGITS) {
            self.state.interest.announced(topic, said == kind::NEW);
            rest = after;
        }
        Vec::new()
    }
}
