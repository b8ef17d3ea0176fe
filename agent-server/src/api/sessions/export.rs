//! Export of a session: JSON lines, Markdown or HTML.

use std::{pin::pin, sync::Arc};

use agent::{journal::Journal, store};
use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::{Stream, StreamExt, stream};
use http::header;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::{Found, public::Names};
use crate::{
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
    export::{Chapter, HTML_FOOT, HTML_HEAD},
    extract::Query,
};

/// Number of lines that are read before the client takes them.
const AHEAD: usize = 16;

pub(super) fn router() -> Router<App> {
    Router::new().route("/sessions/{session}/export", get(export))
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// One journal entry per line.
    #[default]
    Jsonl,
    Markdown,
    Html,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    format: Format,
}

async fn export(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let found = Found::whole(&app, &caller, &name).await?;
    let store_name = found.store_name();
    let chapter = || Chapter::read(&**app.journal(), &store_name, found.id.session());
    let (kind, ending, body) = match wanted.format {
        Format::Jsonl => ("application/x-ndjson", "jsonl", Body::from_stream(exported(app.journal().clone(), &found))),
        Format::Markdown => ("text/markdown; charset=utf-8", "md", chapter().await?.markdown().into()),
        Format::Html => {
            let page = format!("{HTML_HEAD}{}{HTML_FOOT}", chapter().await?.html());
            ("text/html; charset=utf-8", "html", page.into())
        }
    };
    let disposition = format!("attachment; filename=\"session.{ending}\"");
    Ok(([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)], body).into_response())
}

/// Reads the lines of a session as the client takes them; an error ends the response early.
fn exported(journal: Arc<dyn Journal>, found: &Found) -> impl Stream<Item = agent::Result<String>> + 'static {
    let (names, session) = (Names::new(&found.id), found.store_name());
    let (lines, taken) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        let mut read = pin!(store::export(&*journal, [session]));
        while let Some(line) = read.next().await {
            let line = line.and_then(|line| names.line(&line)).map(|line| line + "\n");
            let is_over = line.is_err();
            if lines.send(line).await.is_err() || is_over {
                return; // the client is gone, or the export failed
            }
        }
    });
    stream::unfold(taken, async |mut taken| Some((taken.recv().await?, taken)))
}
