//! OpenAI's batches: one file of requests, and files of answers and of errors.

use agent_core::Result;
use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    BatchCounts, BatchStatus, Written,
    result::{Place, not_yet},
};
use crate::{
    FileApi,
    provider::desk::{Desk, text},
    wire::endpoint::percent_encoded,
};

#[derive(Serialize)]
struct Line<'a> {
    custom_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    body: &'a RawValue,
}

/// Uploads the requests as JSON lines, and returns the id of the file. `url` is the endpoint
/// written into each line.
pub(super) async fn store(desk: &Desk, requests: &[Written], url: Option<&str>) -> Result<String> {
    let mut lines = Vec::new();
    for request in requests {
        let method = url.map(|_| "POST");
        let line = Line { custom_id: &request.custom_id, method, url, body: &request.body };
        serde_json::to_writer(&mut lines, &line).expect("made of JSON");
        lines.push(b'\n');
    }
    Ok(FileApi::OpenAi.at(desk).store("batch.jsonl", "application/jsonl", lines.into(), "batch").await?.id)
}

/// Returns the path of the requests, as the provider names it.
pub(super) fn endpoint(desk: &Desk, request: &Written) -> String {
    let base = desk.base_url();
    let path = request.uri.to_string();
    format!("/v1{}", path.strip_prefix(base).unwrap_or(request.uri.path()))
}

pub(super) async fn submit(desk: &Desk, requests: &[Written]) -> Result<String> {
    let endpoint = requests.first().map(|request| endpoint(desk, request)).unwrap_or_default();
    let file = store(desk, requests, Some(&endpoint)).await?;
    let batch = json!({"input_file_id": file, "endpoint": endpoint, "completion_window": "24h"});
    let said = desk.post_json(desk.uri("/batches")?, &HeaderMap::new(), batch.to_string()).await?;
    Ok(text(&desk.provider.name, &said, "/id")?.to_owned())
}

pub(super) async fn get(desk: &Desk, id: &str) -> Result<Value> {
    desk.get_json(desk.uri(&format!("/batches/{}", percent_encoded(id)))?, &HeaderMap::new()).await
}

pub(super) fn status(said: &Value) -> BatchStatus {
    let count = |name: &str| said["request_counts"][name].as_u64().unwrap_or_default();
    let state = said["status"].as_str().unwrap_or_default().to_owned();
    let ended = matches!(state.as_str(), "completed" | "failed" | "expired" | "cancelled");
    let why =
        || said.pointer("/errors/data/0/message").and_then(Value::as_str).unwrap_or("the provider gave no reason");
    let failed = (state == "failed").then(|| why().to_owned());
    let counts = BatchCounts { total: count("total"), succeeded: count("completed"), failed: count("failed") };
    BatchStatus { ended, failed, state, counts }
}

pub(super) async fn results(desk: &Desk, id: &str) -> Result<Vec<Place>> {
    let said = get(desk, id).await?;
    if !status(&said).ended {
        return Err(not_yet());
    }
    files(desk, [&said["output_file_id"], &said["error_file_id"]])
}

/// Returns the locations of those files that exist.
pub(super) fn files(desk: &Desk, ids: [&Value; 2]) -> Result<Vec<Place>> {
    let files = FileApi::OpenAi.at(desk);
    let ids = ids.into_iter().filter_map(Value::as_str);
    ids.map(|id| Ok(Place::At(files.content_uri(id)?, HeaderMap::new()))).collect()
}

pub(super) async fn cancel(desk: &Desk, id: &str) -> Result<()> {
    let uri = desk.uri(&format!("/batches/{}/cancel", percent_encoded(id)))?;
    desk.post(uri, &HeaderMap::new(), bytes::Bytes::new()).await.map(drop)
}
