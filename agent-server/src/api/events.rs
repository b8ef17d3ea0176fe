//! `/api/runs/{run}/events`: a run's events as they come, and again after a break.

use std::sync::Arc;

use agent::{Event, EventKind, event::Position, run::RunIds};
use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use futures::{StreamExt, stream};
use http::HeaderMap;
use serde::Deserialize;

use crate::{
    app::{App, FoundRun, OpenStream},
    caller::{Caller, Scope},
    error::ApiError,
    extract::Query,
    sse::{self, Frame},
};

pub(super) fn router() -> Router<App> {
    Router::new().route("/runs/{run}/events", get(events))
}

/// Which events are wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Wanted {
    session: Option<String>,
    /// The id of the last event that the client has.
    after: Option<String>,
    chunks: Option<bool>,
}

async fn events(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    Query(mut wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    // What the browser says when it comes back is newer than what its page said first.
    if let Some(last) = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty()) {
        wanted.after = Some(last.to_owned());
    }
    let run = app.run(&caller, &run, wanted.session.as_deref()).await?;
    stream(app.stream()?, &run, &wanted).await
}

/// The events of a run, and then how it stands.
pub(super) async fn stream(open: OpenStream, run: &FoundRun, wanted: &Wanted) -> Result<Response, ApiError> {
    let after = wanted.after.as_deref().map(place).transpose()?;
    let (chunks, mut renamed) = (wanted.chunks.unwrap_or(true), Renamed { session: run.session(), last: None });
    let events = run.events(after).await?;
    let frames = events.filter_map(move |event| {
        let _ = &open; // as long as somebody reads
        let is_wanted = chunks || !matches!(event.kind, EventKind::Chunk(_));
        let frame = is_wanted.then(|| frame(&renamed.event(event)));
        async move { frame }
    });
    let run = run.clone();
    let end = stream::once(async move {
        run.ended().await;
        match run.view().await {
            Ok(view) => Frame { event: Some("end"), ..json(&view) },
            Err(error) => Frame { event: Some("error"), ..json(&error.body()) },
        }
    });
    Ok(sse::response(frames.chain(end)))
}

fn frame(event: &Event) -> Frame {
    let Position { seq, after } = event.position;
    let kind = matches!(event.kind, EventKind::Unreadable { .. }).then_some("error");
    Frame { id: Some(format!("{seq}.{after}")), event: kind, ..json(event) }
}

fn json(value: &impl serde::Serialize) -> Frame {
    Frame::new(serde_json::to_string(value).unwrap_or_default())
}

/// The place that an event's id says.
fn place(id: &str) -> Result<Position, ApiError> {
    let numbers = id.split_once('.').unwrap_or((id, "0"));
    match (numbers.0.parse(), numbers.1.parse()) {
        (Ok(seq), Ok(after)) => Ok(Position { seq, after }),
        _ => Err(ApiError::invalid("the id of an event is a number, a point and a number, such as 12.3")),
    }
}

/// Gives events the session's name that the client knows. The ids of a run are the same from event to event.
struct Renamed {
    session: Arc<str>,
    last: Option<(Arc<RunIds>, Arc<RunIds>)>,
}

impl Renamed {
    fn event(&mut self, mut event: Event) -> Event {
        match &self.last {
            Some((from, to)) if Arc::ptr_eq(from, &event.ids) => event.ids = to.clone(),
            _ => {
                let mut ids = (*event.ids).clone();
                (ids.session, ids.user) = (self.session.clone(), None);
                let from = std::mem::replace(&mut event.ids, Arc::new(ids));
                self.last = Some((from, event.ids.clone()));
            }
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_place() {
        assert_eq!(place("12.3").expect("a place"), Position { seq: 12, after: 3 });
        assert_eq!(place("12").expect("a place"), Position { seq: 12, after: 0 });
        for none in ["", "x", "1.2.3", "-1.0", "1.99999999999"] {
            assert!(place(none).is_err(), "{none}");
        }
    }
}
