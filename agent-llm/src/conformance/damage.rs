//! Checks with corrupted data.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use agent_core::{ErrorKind, Result};
use http::{HeaderMap, StatusCode};

use super::{
    Mutator, Samples,
    drive::{read_events, read_pieces},
    report::panicked,
};
use crate::{RequestReader, framing::framed};

/// Number of corruptions per sample.
const TIMES: u64 = 200;

pub(super) fn never_panics(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let codec = &**codec;
    let mut out = Vec::new();
    for seed in 0..TIMES {
        for (at, answer) in samples.answers.iter().enumerate() {
            let mut random = Mutator::new(seed * 1_000 + at as u64);
            let mut events = answer.events.clone();
            random.events(&mut events);
            out.extend(complaint(&events.join("\n"), || read_events(codec, &events).map(drop)));
            let mut bytes = framed(codec.framing(), &answer.events);
            random.bytes(&mut bytes);
            out.extend(complaint(&bytes.escape_ascii(), || read_pieces(codec, bytes.chunks(7)).map(drop)));
            let (mut body, mut bytes) = (answer.whole.clone(), answer.whole.clone().into_bytes());
            random.json(&mut body);
            random.bytes(&mut bytes);
            for body in [body.as_bytes(), &bytes] {
                out.extend(complaint(&body.escape_ascii(), || codec.decode(body).map(drop)));
            }
        }
        for (at, request) in samples.requests.iter().enumerate() {
            let (mut random, mut request) = (Mutator::new(seed * 1_000 + at as u64), request.clone());
            random.json(&mut request);
            out.extend(complaint(&request, || codec.decode_request(request.as_bytes()).map(drop)));
        }
        for refusal in &samples.refusals {
            let (mut random, mut body) = (Mutator::new(seed), refusal.body.clone().into_bytes());
            random.bytes(&mut body);
            let refused = || Err(codec.decode_error(StatusCode::BAD_REQUEST, &HeaderMap::new(), &body));
            out.extend(complaint(&body.escape_ascii(), refused));
        }
    }
    out
}

/// Returns a complaint unless reading `data` gives an answer or a classified error.
fn complaint(data: &dyn std::fmt::Display, read: impl FnOnce() -> Result<()>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Err(error)) if error.kind() == ErrorKind::Unexpected => Some(format!("{data}: {error:?}")),
        Ok(_) => None,
        Err(panic) => Some(format!("{data}: {}", panicked(&*panic))),
    }
}
