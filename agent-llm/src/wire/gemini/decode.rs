//! Answers that come whole.

use agent_core::{ModelResponse, Result};
use serde_json::value::RawValue;

use super::{answer::Answer, fold::Heard, manner::Manner};

/// Reads the body of an answer that came whole. It may be the list of what a stream would have held: so the API streams to
/// those who do not ask for events.
pub(super) fn decode(body: &str, manner: &Manner) -> Result<ModelResponse> {
    let (mut answer, mut nobody) = (Answer::new(manner.clone()), Heard(None));
    if body.trim_start().starts_with('[') {
        let pieces: Vec<&RawValue> = serde_json::from_str(body).map_err(|e| answer.unreadable(body).with_source(e))?;
        for piece in pieces {
            answer.take(piece.get(), &mut nobody)?;
        }
        return answer.finish(None, &mut nobody);
    }
    let sent = answer.take(body, &mut nobody)?;
    answer.finish(sent, &mut nobody)
}
