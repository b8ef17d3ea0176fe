//! What a run noted and did not hand over yet, in little memory.

use std::{collections::BTreeMap, sync::Arc};

use super::under_way::{Place, UnderWay};
use crate::{Effect, Entry, EntryBody};

/// Notes of a few steps.
const ROOM: usize = 32;

/// The entries of a run that wait to be handed over.
///
/// A run whose journal nobody sees keeps all of them until somebody looks, so those that every step notes are only told
/// from what is [known of the step](UnderWay) anyway: a step with a call takes 180 bytes, where its entries take 770.
#[derive(Default)]
pub(super) struct Noted {
    notes: Vec<Note>,
    /// Entries that are whole already.
    others: Vec<Entry>,
}

struct Note {
    /// Milliseconds since 1970.
    time: u64,
    what: What,
}

/// What is noted; places are those of [`UnderWay`]'s models and calls.
pub(super) enum What {
    /// The model of this place answered.
    ModelFinished(Place),
    /// A step's answer was accepted, as it came and without ending the run.
    ModelAccepted { step: u32 },
    /// The tool of the call in this place is about to run.
    ToolStarted(Place, Effect),
    /// It has run.
    ToolFinished(Place),
    /// The call is answered with what its tool gave.
    ToolAnswered(Place),
    /// A step's calls are answered, no hook changed the results, and the run goes on.
    TurnEnded { step: u32 },
    /// The next of [`Noted::others`].
    Whole,
}

impl Noted {
    pub(super) fn len(&self) -> usize {
        self.notes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Makes room for the notes of a few steps.
    pub(super) fn make_room(&mut self) {
        self.notes.reserve(ROOM);
    }

    pub(super) fn push(&mut self, time: u64, what: What) {
        self.notes.push(Note { time, what });
    }

    pub(super) fn push_whole(&mut self, entry: Entry) {
        self.push(entry.time, What::Whole);
        self.others.push(entry);
    }

    /// Takes all of them, as entries of `run` and its attempt `attempt`.
    pub(super) fn take(&mut self, under_way: &UnderWay, run: &Arc<str>, attempt: &Arc<str>) -> Vec<Entry> {
        let (models, calls) = (&under_way.models, &under_way.calls);
        let mut others = self.others.drain(..);
        let told = self.notes.drain(..).filter_map(|note| {
            let body = match note.what {
                What::Whole => return others.next(),
                What::ModelFinished(at) => models[at].finished(),
                What::ModelAccepted { step } => EntryBody::ModelAccepted { step, message: None, exit: None },
                What::ToolStarted(at, effect) => calls[at].started(effect, attempt.clone()),
                What::ToolFinished(at) => calls[at].finished(),
                What::ToolAnswered(at) => calls[at].answered(),
                What::TurnEnded { step } => EntryBody::TurnEnded { step, changed: BTreeMap::new(), exit: None },
            };
            Some(Entry::new(run.clone(), note.time, body))
        });
        told.collect()
    }
}
