//! Long conversations composed of recorded ones.

use std::{collections::BTreeMap, io, path::Path};

use agent::{
    core::{History, TokenCounter, model::ApproximateCounter},
    llm::RequestReader,
};

use crate::recordings::{Exchange, WIRES};

/// Long conversation in the format of one wire.
pub(crate) struct Transcript {
    pub(crate) wire: &'static str,
    pub(crate) sessions: usize,
    pub(crate) history: History,
}

impl Transcript {
    /// Returns about `wanted` transcripts, equally many of each wire, of the longest sessions in
    /// the file.
    pub(crate) fn read(file: &Path, wanted: usize) -> io::Result<Vec<Self>> {
        let mut longest: BTreeMap<(&'static str, String), History> = BTreeMap::new();
        for exchange in Exchange::read(file)? {
            let exchange = exchange?;
            let Some((wire, history)) = conversation(&exchange) else { continue };
            // A session's later requests contain the whole conversation so far.
            let session = exchange.id.rsplit_once('#').map_or(exchange.id.as_str(), |(session, _)| session);
            let known = longest.entry((wire, session.to_owned())).or_default();
            if history.len() > known.len() {
                *known = history;
            }
        }
        let mut by_wire: BTreeMap<&'static str, Vec<History>> = BTreeMap::new();
        for ((wire, _), history) in longest {
            by_wire.entry(wire).or_default().push(history);
        }
        let piles = wanted.div_ceil(by_wire.len().max(1));
        Ok(by_wire.into_iter().flat_map(|(wire, sessions)| deal(wire, sessions, piles)).take(wanted).collect())
    }
}

/// Maximum tokens of a message: a message that is a large part of a transcript would dominate the
/// comparison.
const LARGEST: u64 = 400;

/// Returns the conversation before this request; `None` if it is not longer than the previous one,
/// or cannot be decoded.
fn conversation(exchange: &Exchange) -> Option<(&'static str, History)> {
    let wire = WIRES.iter().find(|wire| wire.api() == exchange.api)?;
    let body = exchange.request.json.as_ref().filter(|_| exchange.status().is_success())?;
    let codec: Box<dyn RequestReader> = wire.codec(exchange).ok()?;
    let history = codec.decode_request(body.to_string().as_bytes()).ok()?.messages;
    let has_turn = history.len() > 2 && history.iter().any(|message| message.as_assistant().is_some());
    let is_even = history.iter().all(|message| ApproximateCounter.message(message) <= LARGEST);
    (has_turn && is_even).then(|| (wire.api(), history))
}

/// Distributes the sessions to so many transcripts of about the same length, each concatenated to
/// one conversation.
fn deal(wire: &'static str, mut sessions: Vec<History>, piles: usize) -> Vec<Transcript> {
    /// Maximum of sessions per transcript: enough for a long one.
    const MOST: usize = 25;
    sessions.sort_by_key(|history| std::cmp::Reverse(history.len()));
    sessions.truncate(piles * MOST);
    let pile = |at: usize| {
        let own: Vec<_> = sessions.iter().skip(at).step_by(piles).collect();
        let messages = own.iter().flat_map(|history| history.iter().cloned());
        let (history, _) = History::import(messages);
        Transcript { wire, sessions: own.len(), history }
    };
    (0..piles).map(pile).filter(|transcript| !transcript.history.is_empty()).collect()
}
