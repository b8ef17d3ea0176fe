//! Route `/api/runs/{run}/events`: the event stream of a run, which clients can resume.

use std::sync::Arc;

use agent::{Event, EventKind, event::Position, run::RunIds};
use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use futures::{StreamExt, future, stream};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    app::{App, FoundRun, OpenStream, public_ids},
    caller::{Caller, Scope},
    error::ApiError,
    extract::Query,
    sse::{self, Frame},
};

pub(super) fn router() -> Router<App> {
    Router::new().route("/runs/{run}/events", get(events))
}

/// Query of the event stream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Wanted {
    session: Option<String>,
    /// Id of the last event that the client has received.
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
    // After a reconnect, the browser's header is newer than the query of the page.
    if let Some(last) = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty()) {
        wanted.after = Some(last.to_owned());
    }
    let run = app.run(&caller, &run, wanted.session.as_deref()).await?;
    stream(app.stream()?, &run, &wanted).await
}

/// Streams the events of a run, and then its final view.
pub(super) async fn stream(open: OpenStream, run: &FoundRun, wanted: &Wanted) -> Result<Response, ApiError> {
    let after = wanted.after.as_deref().map(place).transpose()?;
    let (chunks, mut writer) = (wanted.chunks.unwrap_or(true), Writer::default());
    let events = run.events(after).await?;
    let frames = events.filter_map(move |event| {
        let _ = &open; // held while the stream is read
        let is_wanted = chunks || !matches!(event.kind, EventKind::Chunk(_));
        future::ready(is_wanted.then(|| writer.frame(&event)))
    });
    let run = run.clone();
    let end = stream::once(async move {
        run.ended().await;
        match run.view().await {
            Ok(view) => Frame::with(&[("event", "end")], &view),
            Err(error) => Frame::with(&[("event", "error")], &error.body()),
        }
    });
    Ok(sse::response(frames.chain(end)))
}

/// Parses the position in an event id.
fn place(id: &str) -> Result<Position, ApiError> {
    let numbers = id.split_once('.').unwrap_or((id, "0"));
    match (numbers.0.parse(), numbers.1.parse()) {
        (Ok(seq), Ok(after)) => Ok(Position { seq, after }),
        _ => Err(ApiError::invalid("invalid event id: expected two numbers with a point, such as 12.3")),
    }
}

/// Encoder of outgoing events. Caches the encoded run ids, which rarely change between events.
#[derive(Default)]
struct Writer {
    last: Option<(Arc<RunIds>, Box<RawValue>)>,
}

/// An [`Event`] in the form of [`App::public`].
#[derive(Serialize)]
struct Public<'a> {
    position: Position,
    ids: &'a RawValue,
    kind: &'a EventKind,
}

impl Writer {
    fn frame(&mut self, event: &Event) -> Frame {
        let Position { seq, after } = event.position;
        let id = format!("{seq}.{after}");
        let fields = [("id", id.as_str()), ("event", "error")];
        let is_error = matches!(event.kind, EventKind::Unreadable { .. });
        let public = Public { position: event.position, ids: self.ids(&event.ids), kind: &event.kind };
        Frame::with(if is_error { &fields } else { &fields[..1] }, &public)
    }

    fn ids(&mut self, ids: &Arc<RunIds>) -> &RawValue {
        let last = self.last.take().filter(|(last, _)| Arc::ptr_eq(last, ids));
        let write = || (ids.clone(), to_raw_value(&public_ids(ids)).unwrap_or_default());
        &self.last.insert(last.unwrap_or_else(write)).1
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
