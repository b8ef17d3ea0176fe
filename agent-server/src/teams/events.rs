//! The events of a team's session as one stream of all members, which clients can resume.

use std::{collections::VecDeque, sync::Arc};

use agent::team::{TeamEvent, TeamEventKind, TeamEvents, TeamHistory, TeamRecord};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};

use super::{Teams, live::Live, view::TeamView};
use crate::{app::App, error::ApiError, sse::Frame};

/// One item of the stream.
pub(super) enum Item {
    /// A change of the team, from the journal or live.
    Change(TeamRecord),
    /// An event of a member's run.
    Run(TeamEvent),
    /// The run ended or was suspended.
    End(Option<String>),
}

/// Reader of a session's events.
struct Feed {
    app: App,
    teams: Teams,
    session: Arc<str>,
    /// Sequence number of the last change that was sent.
    last: u64,
    ready: VecDeque<Item>,
    live: Option<(Live, TeamEvents)>,
    /// True if the run is over, and nothing follows.
    is_over: bool,
}

/// Streams the changes of a session after a position, then live events until its run ends or is suspended.
/// `live` was subscribed to before the run began, if it began now.
pub(super) fn items(
    app: App,
    teams: Teams,
    session: Arc<str>,
    after: u64,
    live: Option<(Live, TeamEvents)>,
) -> impl Stream<Item = Result<Item, ApiError>> + Send {
    let live = live.or_else(|| {
        let live = teams.live().get(&session)?;
        let events = live.handle.events();
        Some((live, events))
    });
    let feed = Feed { app, teams, session, last: after, ready: VecDeque::new(), live, is_over: false };
    stream::unfold(Some((feed, true)), |state| async move {
        let (mut feed, is_first) = state?;
        if is_first && let Err(error) = feed.read().await {
            return Some((Err(error), None));
        }
        match feed.next().await {
            Ok(Some(item)) => Some((Ok(item), Some((feed, false)))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl Feed {
    /// Reads the changes that the journal has since the last one. Returns whether the run is open.
    async fn read(&mut self) -> Result<bool, ApiError> {
        let history = TeamHistory::read(&**self.app.journal(), &self.session).await?;
        for record in history.records {
            if record.seq > self.last {
                self.ready.push_back(Item::Change(record));
            }
        }
        self.last = self.ready.iter().rev().find_map(Item::seq).unwrap_or(self.last);
        Ok(history.state.is_open())
    }

    async fn next(&mut self) -> Result<Option<Item>, ApiError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.live.take() {
                Some((live, mut events)) => match events.next().await {
                    Some(event) => {
                        self.live = Some((live, events));
                        self.take(event);
                    }
                    None => {
                        let error = live.ended().await;
                        self.read().await?;
                        self.end(error);
                    }
                },
                None => self.follow().await?,
            }
        }
    }

    /// Follows a run that another process drives, or that nobody drives.
    async fn follow(&mut self) -> Result<(), ApiError> {
        let is_open = self.read().await?;
        if !self.ready.is_empty() {
            return Ok(());
        }
        if !is_open {
            self.end(None);
            return Ok(());
        }
        if let Some(live) = self.teams.live().get(&self.session) {
            let events = live.handle.events();
            self.live = Some((live, events));
            return Ok(());
        }
        self.app.journal().news(&self.session, self.last).await?;
        Ok(())
    }

    fn take(&mut self, event: TeamEvent) {
        match event.record(crate::clock::now()) {
            Some(record) if record.seq > self.last => {
                self.last = record.seq;
                self.ready.push_back(Item::Change(record));
            }
            Some(_) => {}
            None => self.ready.push_back(Item::Run(event)),
        }
    }

    fn end(&mut self, error: Option<String>) {
        self.ready.push_back(Item::End(error));
        self.is_over = true;
    }
}

impl Item {
    fn seq(&self) -> Option<u64> {
        match self {
            Self::Change(record) => Some(record.seq),
            _ => None,
        }
    }
}

/// The item as a frame: `change` with an id, `run`, or `end` with the session's state.
pub(super) async fn frame(app: &App, team: &str, public: &Arc<str>, session: &Arc<str>, item: Item) -> Frame {
    match item {
        Item::Change(record) => {
            let id = record.seq.to_string();
            Frame::with(&[("id", id.as_str()), ("event", "change")], &record)
        }
        Item::Run(event) => {
            let (member, kind) = (event.member, event.kind);
            let event = match kind {
                TeamEventKind::Run(event) => serde_json::to_value(app.public(*event)).unwrap_or_default(),
                _ => Value::Null,
            };
            Frame::with(&[("event", "run")], &json!({"member": member, "event": event}))
        }
        Item::End(error) => {
            let history = TeamHistory::read(&**app.journal(), session).await;
            let Ok(history) = history else { return Frame::with(&[("event", "error")], &ApiError::internal().body()) };
            let mut view = TeamView::new(team, public.clone(), &history.state, false);
            view.error = view.error.or(error);
            Frame::with(&[("event", "end")], &view)
        }
    }
}
