//! Anthropic's Message Batches.

use agent_core::Result;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    BatchCounts, BatchStatus, Written, invalid,
    result::{Place, not_yet},
};
use crate::{
    provider::desk::{Desk, headers, text},
    wire::endpoint::percent_encoded,
};

const BETA: &str = "anthropic-beta";

#[derive(Serialize)]
struct Batch<'a> {
    requests: Vec<Request<'a>>,
}

#[derive(Serialize)]
struct Request<'a> {
    custom_id: &'a str,
    params: &'a RawValue,
}

pub(super) async fn submit(desk: &Desk, requests: &[Written]) -> Result<String> {
    let is_taken = |id: &str| {
        (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if let Some(wrong) = requests.iter().find(|request| !is_taken(&request.custom_id)) {
        let id = &wrong.custom_id;
        return Err(invalid(format!("'{id}' is no id for a batch: up to 64 letters, digits, '_' and '-' are")));
    }
    // Beta features are requested once, for the whole batch.
    let mut betas: Vec<_> = requests
        .iter()
        .filter_map(|request| request.headers.get(BETA)?.to_str().ok())
        .flat_map(|betas| betas.split(','))
        .collect();
    betas.sort_unstable();
    betas.dedup();
    let mut headers = version(desk);
    if let Some(betas) = HeaderValue::try_from(betas.join(",")).ok().filter(|_| !betas.is_empty()) {
        headers.insert(HeaderName::from_static(BETA), betas);
    }
    let requests = requests.iter().map(|request| Request { custom_id: &request.custom_id, params: &request.body });
    let body = serde_json::to_vec(&Batch { requests: requests.collect() }).expect("made of JSON");
    let said = desk.post_json(desk.uri("/v1/messages/batches")?, &headers, body).await?;
    Ok(text(&desk.provider.name, &said, "/id")?.to_owned())
}

fn version(desk: &Desk) -> HeaderMap {
    let profile = desk.provider.anthropic.as_ref();
    headers([("anthropic-version", profile.map_or("", |profile| &profile.version))])
}

pub(super) async fn get(desk: &Desk, id: &str) -> Result<Value> {
    desk.get_json(desk.uri(&format!("/v1/messages/batches/{}", percent_encoded(id)))?, &version(desk)).await
}

pub(super) fn status(said: &Value) -> BatchStatus {
    let count = |name: &str| said["request_counts"][name].as_u64().unwrap_or_default();
    let failed = count("errored") + count("canceled") + count("expired");
    let succeeded = count("succeeded");
    let state = said["processing_status"].as_str().unwrap_or_default().to_owned();
    let counts = BatchCounts { total: count("processing") + succeeded + failed, succeeded, failed };
    BatchStatus { ended: state == "ended", failed: None, state, counts }
}

pub(super) async fn results(desk: &Desk, id: &str) -> Result<Vec<Place>> {
    let said = get(desk, id).await?;
    match said["results_url"].as_str() {
        Some(url) => Ok(vec![Place::At(desk.own(url)?, version(desk))]),
        None => Err(not_yet()),
    }
}

pub(super) async fn cancel(desk: &Desk, id: &str) -> Result<()> {
    let uri = desk.uri(&format!("/v1/messages/batches/{}/cancel", percent_encoded(id)))?;
    desk.post(uri, &version(desk), Bytes::new()).await.map(drop)
}
