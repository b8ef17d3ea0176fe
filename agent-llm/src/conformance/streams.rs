//! Checks of streams that end early, and of bytes that arrive in pieces.

use std::sync::Arc;

use agent_core::{ErrorKind, Retry};

use super::{
    Answer, Samples,
    answers::streamed,
    drive::{complaints, read_pieces},
};
use crate::{Codec, Progress, RequestReader, framing::framed};

/// Maximum number of positions at which one stream is split in two.
const SPLITS: usize = 400;

pub(super) fn cut(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let answers = samples.answers.iter().filter(|answer| !answer.events.is_empty());
    answers.flat_map(|answer| complaints(cut_after_each(&**codec, answer), &answer.name)).collect()
}

fn cut_after_each(codec: &dyn Codec, answer: &Answer) -> Result<Vec<String>, String> {
    let all = streamed(codec, answer)?.0.message;
    let mut out = Vec::new();
    for end in 0..=answer.events.len() {
        let (mut decoder, mut chunks) = (codec.decoder(true), Vec::new());
        answer.events[..end]
            .iter()
            .try_for_each(|event| decoder.frame(event, &mut chunks))
            .map_err(|error| format!("after {end} events: {error}"))?;
        let progress = decoder.progress();
        match (progress, decoder.finish(&mut chunks)) {
            (Progress::Open, Err(error))
                if error.kind() == ErrorKind::Truncated && error.retry() == Retry::Temporary(None) => {}
            (Progress::Open, Err(error)) => out.push(format!("cut after {end} events, it is another error: {error:?}")),
            (Progress::Open, Ok(_)) => out.push(format!("cut after {end} events, it is an answer")),
            (_, Err(error)) => out.push(format!("complete after {end} events, and yet an error: {error:?}")),
            (_, Ok(response)) if response.message.blocks() != all.blocks() => {
                out.push(format!("said to be complete after {end} events, when more was to come"));
            }
            (_, Ok(_)) => {}
        }
        let is_last = end == answer.events.len();
        if is_last && progress == Progress::Open || end == 0 && progress != Progress::Open {
            out.push(format!("after {end} events of {} it is {progress:?}", answer.events.len()));
        }
    }
    Ok(out)
}

pub(super) fn split(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let answers = samples.answers.iter().filter(|answer| !answer.events.is_empty());
    answers.flat_map(|answer| complaints(split_anywhere(&**codec, answer), &answer.name)).collect()
}

fn split_anywhere(codec: &dyn Codec, answer: &Answer) -> Result<Vec<String>, String> {
    let bytes = framed(codec.framing(), &answer.events);
    let at_once = streamed(codec, answer)?;
    let same = |pieces: &mut dyn Iterator<Item = &[u8]>| read_pieces(codec, pieces).is_ok_and(|read| read == at_once);
    let mut out = Vec::new();
    for at in (0..bytes.len()).step_by(bytes.len() / SPLITS + 1) {
        let (one, other) = bytes.split_at(at);
        if !same(&mut [one, other].into_iter()) {
            out.push(format!("split at byte {at}, it is another answer"));
        }
    }
    if !same(&mut bytes.chunks(1)) {
        out.push("byte by byte, it is another answer".into());
    }
    Ok(out)
}
