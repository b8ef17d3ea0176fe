//! Checks of the error properties that layers depend on.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Message, Model, Result, Retry};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::{
    Samples,
    drive::{read_events, request},
};
use crate::{Codec, ModelBuilder, RequestReader, transport_fn};

/// Delay, request id and key in the suite's error responses.
const DELAY: Duration = Duration::from_secs(7);
const REQUEST_ID: &str = "request-4711";
const KEY: &str = "a-very-secret-key";

/// Kind that each status implies, whatever the body.
const STATUSES: [(u16, ErrorKind); 6] = [
    (401, ErrorKind::Authentication),
    (404, ErrorKind::InvalidRequest),
    (429, ErrorKind::RateLimited),
    (500, ErrorKind::Provider),
    (503, ErrorKind::Overloaded),
    (529, ErrorKind::Overloaded),
];

/// Bodies of gateways, which follow no protocol.
const BODIES: [&str; 5] = ["", "null", "no healthy upstream", "<html><body>Bad Gateway</body></html>", "{\"error\":"];

pub(super) fn say_what_layers_need(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let mut out = Vec::new();
    for (status, kind) in STATUSES {
        for body in BODIES {
            let error = refused(&**codec, status, body);
            out.extend(wrong(&error, kind).map(|why| format!("{status} {body:?}: {why}")));
        }
    }
    for refusal in &samples.refusals {
        let error = refused(&**codec, refusal.status, &refusal.body);
        out.extend(wrong(&error, refusal.kind).map(|why| format!("{} {}: {why}", refusal.status, refusal.body)));
    }
    for interruption in &samples.interruptions {
        match read_events(&**codec, &interruption.events) {
            Err(error) if error.kind() == interruption.kind => {}
            Err(error) => out.push(format!("an error in a stream is not {}: {error:?}", interruption.kind)),
            Ok(_) => out.push(format!("an error in a stream was not seen: {:?}", interruption.events)),
        }
    }
    out.extend(shows_the_key(codec));
    out
}

fn refused(codec: &dyn Codec, status: u16, body: &str) -> Error {
    let headers = [("retry-after", "7"), ("x-request-id", REQUEST_ID)];
    let headers = headers.map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
    let status = StatusCode::from_u16(status).unwrap_or_default();
    codec.decode_error(status, &HeaderMap::from_iter(headers), body.as_bytes())
}

/// Returns what is wrong with the error of a refusal, if anything.
fn wrong(error: &Error, kind: ErrorKind) -> Option<String> {
    let passes =
        matches!(kind, ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Timeout | ErrorKind::Provider);
    let retry = if passes { Retry::Temporary(Some(DELAY)) } else { Retry::Permanent };
    if error.kind() != kind {
        Some(format!("not {kind}, but {error:?}"))
    } else if error.retry() != retry {
        Some(format!("{:?} instead of {retry:?}", error.retry()))
    } else if error.context("request_id") != Some(REQUEST_ID) {
        Some(format!("the provider's id of the request is lost: {error:?}"))
    } else if error.message().is_empty() {
        Some("it says nothing".into())
    } else {
        None
    }
}

/// Providers may repeat keys in their messages: neither the message, nor a fact, nor a cause may
/// contain one.
fn shows_the_key(codec: &Arc<dyn RequestReader>) -> Vec<String> {
    let said =
        format!(r#"{{"error":{{"message":"Wrong key: {KEY}","code":"{KEY}","type":"{KEY}"}},"detail":"{KEY}"}}"#);
    let mut out = Vec::new();
    for (status, body) in [(401, said.clone()), (200, said.clone()), (200, format!("{KEY} is no JSON"))] {
        let transport = transport_fn(move |_| {
            let mut response = Response::new(body.clone().into());
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
            async move { Ok(response) }
        });
        let Err(error) = call(codec, transport) else {
            out.push(format!("a refusal with status {status} is an answer"));
            continue;
        };
        if format!("{error} {error:?} {error:#?}").contains(KEY) {
            out.push(format!("the error to a refusal with status {status} shows the key"));
        }
    }
    out
}

fn call(codec: &Arc<dyn RequestReader>, transport: impl crate::Transport) -> Result<()> {
    let model = ModelBuilder::new(codec.clone()).api_key(KEY).transport(transport).retries(0).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Error::config("there is no runtime").with_source(error))?;
    runtime.block_on(model.call(request([Message::user("hi")]))).map(drop)
}
