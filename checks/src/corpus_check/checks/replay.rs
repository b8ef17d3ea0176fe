//! Check that a provider's response is sent back unchanged.

use std::sync::Arc;

use agent::{
    AssistantMessage, Message,
    core::{History, ModelParams, ModelRequest, ToolMessage},
    testing::detached_run,
};
use serde_json::Value;

use super::{Outcome, Subject};
use crate::recordings::Recording;

pub(super) fn check(subject: &Subject<'_>) -> Outcome {
    let turn = match &subject.recording {
        Recording::Whole(whole) | Recording::Streamed(whole) => match subject.wire.turn(whole) {
            Some(turn) if !subject.wire.said(&turn).is_empty() => turn,
            Some(_) => return Outcome::NotCheckable("the turn says nothing, and no history takes such a turn"),
            None => return Outcome::NotMeant,
        },
        Recording::Cut => return Outcome::NotCheckable("the stream was cut"),
        Recording::Interrupted => return Outcome::NotCheckable("the stream holds an error"),
        Recording::Broken(why) => return Outcome::NotCheckable(why),
        Recording::Refused(_) | Recording::Error => return Outcome::NotMeant,
    };
    let message = match subject.response() {
        Ok(response) => response.message,
        Err(error) => return Outcome::failed(format!("the answer was not read: {error:?}")),
    };
    let mut edited = message.clone();
    edited.blocks_mut();
    let unedited = sent_back(subject, message).map(|back| subject.wire.turn_differences(&turn, &back));
    let said = subject.wire.said(&turn);
    let edited = sent_back(subject, edited).map(|back| said.differences(&subject.wire.said(&back)));
    let edited =
        edited.map(|lines| lines.into_iter().map(|line| format!("after an edit that changes nothing: {line}")));
    match unedited.and_then(|unedited| Ok(unedited.into_iter().chain(edited?))) {
        Ok(complaints) => Outcome::of(complaints.collect()),
        Err(why) => Outcome::failed(why),
    }
}

fn sent_back(subject: &Subject<'_>, message: AssistantMessage) -> Result<Value, String> {
    subject.wire.sent_back(&encoded(subject, message)?).ok_or_else(|| "the turn is not in the request".to_owned())
}

/// Returns the settings of the recorded request that repairs depend on: whether the model thinks.
fn params(subject: &Subject<'_>) -> Option<ModelParams> {
    let sent = subject.exchange.request.json.as_ref()?.to_string();
    let read = subject.codec.decode_request(sent.as_bytes()).ok()?.params;
    let mut params = ModelParams::default();
    params.effort = read.effort;
    params.extra.extend(read.extra.into_iter().filter(|(name, _)| name == "thinking"));
    Some(params)
}

/// Encodes the request that follows `message`.
pub(crate) fn encoded(subject: &Subject<'_>, message: AssistantMessage) -> Result<Value, String> {
    let results = message.calls().map(|call| ToolMessage::text(call.id.clone(), call.name.clone(), "done", false));
    let results: Vec<_> = results.map(Message::Tool).collect();
    let history = History::import([Message::user("go"), Message::Assistant(message)].into_iter().chain(results)).0;
    let mut request = ModelRequest::new(detached_run(history).cx().clone());
    if let Some(params) = params(subject) {
        request.params = Arc::new(params);
    }
    let request = subject.codec.encode(&request).map_err(|error| format!("not encoded: {error:?}"))?;
    serde_json::from_slice(request.body()).map_err(|error| format!("the request is not JSON: {error}"))
}
