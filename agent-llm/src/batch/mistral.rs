//! Mistral's batch jobs: files as in OpenAI's API, with Mistral's own job API.

use agent_core::Result;
use http::HeaderMap;
use serde_json::{Value, json};

use super::{
    BatchCounts, BatchStatus, Written,
    openai::{endpoint, files, store},
    result::{Place, not_yet},
};
use crate::{
    provider::desk::{Desk, text},
    wire::endpoint::percent_encoded,
};

pub(super) async fn submit(desk: &Desk, requests: &[Written]) -> Result<String> {
    let endpoint = requests.first().map(|request| endpoint(desk, request)).unwrap_or_default();
    let file = store(desk, requests, None).await?;
    let job = json!({"input_files": [file], "endpoint": endpoint, "model": desk.model.codec().origin().model()});
    let said = desk.post_json(desk.uri("/batch/jobs")?, &HeaderMap::new(), job.to_string()).await?;
    Ok(text(&desk.provider.name, &said, "/id")?.to_owned())
}

pub(super) async fn get(desk: &Desk, id: &str) -> Result<Value> {
    desk.get_json(desk.uri(&format!("/batch/jobs/{}", percent_encoded(id)))?, &HeaderMap::new()).await
}

pub(super) fn status(said: &Value) -> BatchStatus {
    let count = |name: &str| said[name].as_u64().unwrap_or_default();
    let state = said["status"].as_str().unwrap_or_default().to_owned();
    let ended = matches!(state.as_str(), "SUCCESS" | "FAILED" | "TIMEOUT_EXCEEDED" | "CANCELLED");
    let why = || said.pointer("/errors/0/message").and_then(Value::as_str).unwrap_or("the provider gave no reason");
    let failed = (state == "FAILED").then(|| why().to_owned());
    let counts = BatchCounts {
        total: count("total_requests"),
        succeeded: count("succeeded_requests"),
        failed: count("failed_requests"),
    };
    BatchStatus { ended, failed, state, counts }
}

pub(super) async fn results(desk: &Desk, id: &str) -> Result<Vec<Place>> {
    let said = get(desk, id).await?;
    if !status(&said).ended {
        return Err(not_yet());
    }
    files(desk, [&said["output_file"], &said["error_file"]])
}

pub(super) async fn cancel(desk: &Desk, id: &str) -> Result<()> {
    let uri = desk.uri(&format!("/batch/jobs/{}/cancel", percent_encoded(id)))?;
    desk.post(uri, &HeaderMap::new(), bytes::Bytes::new()).await.map(drop)
}
