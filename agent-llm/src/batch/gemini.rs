//! Gemini's batches: requests inline in the batch request or in a file; answers inline in the
//! response, or in a file if there are many.

use agent_core::Result;
use bytes::Bytes;
use http::{HeaderMap, Uri};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    BatchCounts, BatchStatus, Written, invalid,
    result::{Place, not_yet},
};
use crate::{
    FileApi,
    provider::desk::{Desk, text},
};

/// Maximum size of inline requests, in bytes. Larger batches are uploaded as a file first.
const MOST: usize = 19 << 20;

#[derive(Serialize)]
struct Inline<'a> {
    request: &'a RawValue,
    metadata: Key<'a>,
}

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    request: &'a RawValue,
}

#[derive(Serialize)]
struct Key<'a> {
    key: &'a str,
}

pub(super) async fn submit(desk: &Desk, requests: &[Written]) -> Result<String> {
    let first = requests.first().map(|request| request.uri.to_string()).unwrap_or_default();
    let place = first.strip_suffix(":generateContent").map(|model| format!("{model}:batchGenerateContent"));
    let place: Option<Uri> = place.and_then(|place| place.parse().ok());
    let place = place.ok_or_else(|| invalid(format!("no batch can be made of requests to {first}")))?;
    let bytes: usize = requests.iter().map(|request| request.body.get().len() + request.custom_id.len()).sum();
    let input = if bytes > MOST {
        let mut lines = Vec::with_capacity(bytes + requests.len() * 32);
        for request in requests {
            let line = Line { key: &request.custom_id, request: &request.body };
            serde_json::to_writer(&mut lines, &line).expect("made of JSON");
            lines.push(b'\n');
        }
        let file = FileApi::Gemini.at(desk).store("batch.jsonl", "application/jsonl", lines.into(), "").await?;
        json!({"file_name": file.id}).to_string()
    } else {
        let inline = |request: &'_ Written| -> String {
            let key = Key { key: &request.custom_id };
            serde_json::to_string(&Inline { request: &request.body, metadata: key }).expect("made of JSON")
        };
        let requests: Vec<_> = requests.iter().map(inline).collect();
        format!(r#"{{"requests":{{"requests":[{}]}}}}"#, requests.join(","))
    };
    let body = format!(r#"{{"batch":{{"display_name":"batch","input_config":{input}}}}}"#);
    let said = desk.post_json(place, &HeaderMap::new(), body).await?;
    Ok(text(&desk.provider.name, &said, "/name")?.to_owned())
}

pub(super) async fn get(desk: &Desk, id: &str) -> Result<Value> {
    desk.get_json(desk.uri(&format!("/{id}"))?, &HeaderMap::new()).await
}

pub(super) fn status(said: &Value) -> BatchStatus {
    // A 64-bit number may arrive as a JSON string.
    let count = |name: &str| {
        let said = &said["metadata"]["batchStats"][name];
        said.as_str().and_then(|text| text.parse().ok()).or(said.as_u64()).unwrap_or_default()
    };
    let failed = said
        .get("error")
        .filter(|error| !error.is_null())
        .map(|error| error["message"].as_str().unwrap_or("the provider gave no reason").to_owned());
    let counts = BatchCounts {
        total: count("requestCount"),
        succeeded: count("successfulRequestCount"),
        failed: count("failedRequestCount"),
    };
    let state = said["metadata"]["state"].as_str().unwrap_or_default().to_owned();
    BatchStatus { ended: said["done"] == true || failed.is_some(), failed, state, counts }
}

pub(super) async fn results(desk: &Desk, id: &str) -> Result<Vec<Place>> {
    let said = get(desk, id).await?;
    if !status(&said).ended {
        return Err(not_yet());
    }
    let output = [&said["response"], &said["metadata"]["output"]].into_iter().find(|output| output.is_object());
    let Some(output) = output else { return Ok(Vec::new()) };
    if let Some(file) = output["responsesFile"].as_str() {
        return Ok(vec![Place::At(FileApi::Gemini.at(desk).content_uri(file)?, HeaderMap::new())]);
    }
    let inline = output.pointer("/inlinedResponses/inlinedResponses").and_then(Value::as_array);
    Ok(vec![Place::Here(inline.into_iter().flatten().map(Value::to_string).collect())])
}

pub(super) async fn cancel(desk: &Desk, id: &str) -> Result<()> {
    desk.post(desk.uri(&format!("/{id}:cancel"))?, &HeaderMap::new(), Bytes::new()).await.map(drop)
}
