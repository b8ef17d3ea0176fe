//! Route `/api/files`: uploads.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest, Multipart, Path, Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;

use crate::{
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
    extract::{self, Query},
    files::{FileInfo, Files},
};

/// Allowance for the form fields around a file, in bytes.
const AROUND: usize = 64 << 10;

/// Routes of the file API, with the body limit of `files` in place of the general one.
pub(super) fn router(files: Option<&Files>) -> Router<App> {
    let most = DefaultBodyLimit::max(files.map_or(0, Files::largest) + AROUND);
    Router::new().route("/files", post(put).layer(most)).route("/files/{id}", get(read).delete(delete))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Named {
    name: Option<String>,
}

/// Stores an upload: the raw body, or the first file of a multipart form.
async fn put(
    State(app): State<App>,
    caller: Caller,
    Query(named): Query<Named>,
    request: Request,
) -> Result<(StatusCode, Json<FileInfo>), ApiError> {
    caller.require(Scope::Run)?;
    let files = app.files()?;
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let info = if kind.starts_with("multipart/form-data") {
        let (name, kind, bytes) = first_file(request).await?;
        files.put(&caller, named.name.as_deref().or(name.as_deref()), &kind, bytes).await?
    } else {
        let kind = kind.to_owned();
        let bytes = extract::body(request, &()).await?;
        files.put(&caller, named.name.as_deref(), &kind, bytes).await?
    };
    Ok((StatusCode::CREATED, Json(info)))
}

async fn first_file(request: Request) -> Result<(Option<String>, String, Bytes), ApiError> {
    let broken =
        |e: axum::extract::multipart::MultipartError| ApiError::new(e.status(), "invalid_request", e.body_text());
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|e| ApiError::invalid(e.body_text()))?;
    while let Some(field) = form.next_field().await.map_err(broken)? {
        if field.file_name().is_some() {
            let (name, kind) =
                (field.file_name().map(str::to_owned), field.content_type().unwrap_or_default().to_owned());
            return Ok((name, kind, field.bytes().await.map_err(broken)?));
        }
    }
    Err(ApiError::invalid("the form contains no file"))
}

async fn read(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let (info, bytes) = app.files()?.read(&caller, &id).await?;
    let mut headers = HeaderMap::new();
    let mime = HeaderValue::from_str(&info.mime).unwrap_or(HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_TYPE, mime);
    // Browsers must download the file and never render it: uploaded HTML must not run in this
    // origin.
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    Ok((headers, bytes).into_response())
}

async fn delete(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    caller.require(Scope::Run)?;
    app.files()?.delete(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
