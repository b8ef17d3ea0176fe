//! Export of a session: JSON lines, Markdown or HTML.

use agent::store::export as lines;
use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::TryStreamExt;
use http::header;
use serde::Deserialize;

use super::{Found, renamed};
use crate::{
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
    export::{Chapter, HTML_FOOT, HTML_HEAD},
    extract::Query,
};

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
    let (kind, ending, text) = match wanted.format {
        Format::Jsonl => {
            let lines: Vec<String> = lines(&**app.journal(), [found.store_name()]).try_collect().await?;
            ("application/x-ndjson", "jsonl", renamed(&(lines.join("\n") + "\n"), &found.id))
        }
        Format::Markdown => ("text/markdown; charset=utf-8", "md", chapter().await?.markdown()),
        Format::Html => {
            ("text/html; charset=utf-8", "html", format!("{HTML_HEAD}{}{HTML_FOOT}", chapter().await?.html()))
        }
    };
    let disposition = format!("attachment; filename=\"session.{ending}\"");
    Ok(([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)], text).into_response())
}
