//! Checks that both forms of an answer are equal.

use std::sync::Arc;

use agent_core::ModelResponse;
use serde_json::Value;

use super::{
    Answer, Samples,
    drive::{complaints, kept, read_events},
    json::{differences, lost},
};
use crate::{Codec, RequestReader};

pub(super) fn samples_are_read(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let mut out: Vec<String> =
        samples.answers.iter().flat_map(|answer| complaints(sample_is_read(&**codec, answer), &answer.name)).collect();
    if !samples.answers.iter().any(|answer| !answer.events.is_empty()) {
        out.push("there is no streamed answer: most claims are then about nothing".into());
    }
    if samples.refusals.is_empty() {
        out.push("there is no refusal".into());
    }
    out
}

fn sample_is_read(codec: &dyn Codec, answer: &Answer) -> Result<Vec<String>, String> {
    let turn: Value = serde_json::from_str(&answer.turn).map_err(|error| format!("the turn is not JSON: {error}"))?;
    answer.place_of_turn().ok_or("the turn does not stand in the body")?;
    let response = whole(codec, answer)?;
    let mut out = lost(&turn, &kept(&response));
    if response.message.is_empty() {
        out.push("the message is empty".into());
    }
    match response.message.raw() {
        Some(raw)
            if (raw.origin().wire(), raw.origin().provider()) != (codec.origin().wire(), codec.origin().provider()) =>
        {
            out.push(format!("the message says that it is from {:?}", raw.origin()));
        }
        Some(_) => {}
        None => out.push("the provider's own JSON was not kept".into()),
    }
    Ok(out)
}

pub(super) fn fold(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let streamed = samples.answers.iter().filter(|answer| !answer.events.is_empty());
    streamed.flat_map(|answer| complaints(fold_of(&**codec, answer), &answer.name)).collect()
}

fn fold_of(codec: &dyn Codec, answer: &Answer) -> Result<Vec<String>, String> {
    let whole = whole(codec, answer)?;
    let (heard, _) = streamed(codec, answer)?;
    let mut out = differences(&comparable(&whole), &comparable(&heard));
    let (mut decoder, mut chunks) = (codec.decoder(false), Vec::new());
    let unheard = answer.events.iter().try_for_each(|event| decoder.frame(event, &mut chunks));
    let unheard = unheard.and_then(|()| decoder.finish(&mut chunks)).map_err(|error| error.to_string())?;
    if unheard != heard {
        out.push(format!("without listeners it is another answer: {unheard:?}"));
    }
    if !chunks.is_empty() {
        out.push(format!("without listeners there are chunks: {chunks:?}"));
    }
    Ok(out)
}

/// Returns the parts that must not depend on the form of the answer: everything but the details
/// alongside the message.
fn comparable(response: &ModelResponse) -> Value {
    let mut json = kept(response);
    if let Some(fields) = json.as_object_mut() {
        fields.remove("details");
    }
    json
}

pub(super) fn whole(codec: &dyn Codec, answer: &Answer) -> Result<ModelResponse, String> {
    codec.decode(answer.whole.as_bytes()).map_err(|error| format!("the body was not read: {error:?}"))
}

pub(super) fn streamed(codec: &dyn Codec, answer: &Answer) -> Result<(ModelResponse, Vec<agent_core::Chunk>), String> {
    read_events(codec, &answer.events).map_err(|error| format!("the stream was not read: {error:?}"))
}
