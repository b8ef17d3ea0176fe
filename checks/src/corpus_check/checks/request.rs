//! Check that a request keeps every field when it is decoded and encoded again.

use agent::{core::History, llm::conformance::json, testing::detached_run};
use serde_json::Value;

use super::{Outcome, Subject};

pub(super) fn check(subject: &Subject<'_>) -> Outcome {
    let Some(sent) = &subject.exchange.request.json else {
        return Outcome::NotCheckable("the request was not recorded, or is not JSON");
    };
    if matches!(subject.exchange.status().as_u16(), 400 | 422) {
        return Outcome::NotCheckable("the provider refused the request");
    }
    match read_and_encoded(subject, sent) {
        Ok(mut back) => {
            // A request without a model names it by its path, or by a stored prompt.
            if let Some(fields) = back.as_object_mut().filter(|_| sent.get("model").is_none()) {
                fields.remove("model");
            }
            Outcome::of(json::not_kept(&normalised(subject, sent), &normalised(subject, &back)))
        }
        Err(why) => Outcome::failed(why),
    }
}

/// Decodes `sent` and encodes it again.
fn read_and_encoded(subject: &Subject<'_>, sent: &Value) -> Result<Value, String> {
    let read = subject.codec.decode_request(sent.to_string().as_bytes());
    let read = read.map_err(|error| format!("the request was not read: {error:?}"))?;
    let request = read.into_request(detached_run(History::default()).cx().clone());
    let request = subject.codec.encode(&request).map_err(|error| format!("not encoded: {error:?}"))?;
    serde_json::from_slice(request.body()).map_err(|error| format!("the request is not JSON: {error}"))
}

/// Normalises equivalent forms of a request on this wire.
fn normalised(subject: &Subject<'_>, request: &Value) -> Value {
    let mut request = request.clone();
    subject.wire.normalise_request(&mut request);
    request
}
