//! The note that replaces removed messages in a conversation.

use agent_core::Part;

use super::Unit;
use crate::archive;

/// Start of the note; the number of messages and the rest of the tag follow.
const BEGIN: &str = "<earlier_conversation messages=\"";
const END: &str = "\n</earlier_conversation>";
/// Start of the archive's hint, which is rewritten each time and therefore never appears twice.
const HINT: &str = "\n\nNothing of it is lost: ";

/// The single note in a conversation: the number of removed messages, and a summary of them. The
/// next compaction takes it out, extends it, and puts it back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) removed: usize,
    pub(super) text: String,
}

impl Note {
    /// Takes the notes out of a conversation. Other parts of the same user messages stay.
    pub(super) fn take(units: &mut Vec<Unit>) -> Self {
        let mut all = Self::default();
        units.retain_mut(|unit| {
            let noted = |part: &Part| part.as_text().and_then(Self::read);
            let agent_core::Message::User(message) = unit.first() else { return true };
            if !message.parts().iter().any(|part| noted(part).is_some()) {
                return true;
            }
            let Some(parts) = unit.user_parts_mut() else { return true };
            parts.retain(|part| match noted(part) {
                Some(note) => {
                    all.add(&note);
                    false
                }
                None => true,
            });
            !parts.is_empty()
        });
        all
    }

    fn add(&mut self, other: &Self) {
        // users can write notes themselves, with any number
        self.removed = self.removed.saturating_add(other.removed);
        if !self.text.is_empty() && !other.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(&other.text);
    }

    fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
        let (removed, text) = rest.split_once("\">\n")?;
        let text = text.split(HINT).next().unwrap_or_default();
        let text = text.strip_prefix(LEFT_OUT).unwrap_or(text).trim();
        Some(Self { removed: removed.parse().ok()?, text: text.to_owned() })
    }

    fn write(&self, archive: bool) -> String {
        let Self { removed, text } = self;
        let said = if text.is_empty() { LEFT_OUT } else { text };
        let (search, read) = (archive::SEARCH_HISTORY, archive::READ_ARCHIVED);
        let hint = if archive {
            format!("{HINT}the tool {search} finds the removed messages, and {read} shows them.")
        } else {
            String::new()
        };
        format!("{BEGIN}{removed}\">\n{said}{hint}{END}")
    }

    /// Inserts the note where the recent units begin, into the user message there if there is one,
    /// so that no consecutive user messages arise.
    pub(super) fn put(&self, units: &mut Vec<Unit>, at: usize, archive: bool) {
        if self.removed == 0 {
            return;
        }
        let part = Part::text(self.write(archive));
        match units.get_mut(at).and_then(Unit::user_parts_mut) {
            Some(parts) => parts.insert(0, part),
            None => units.insert(at, Unit::user(vec![part])),
        }
    }
}

const LEFT_OUT: &str = "The messages that stood here were left out.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_found_again_and_what_the_user_said_stays() {
        for text in ["", "They spoke of cats."] {
            let note = Note { removed: 7, text: text.into() };
            for archive in [false, true] {
                let mut units = vec![Unit::user(vec!["hello".into()])];
                note.put(&mut units, 0, archive);
                assert_eq!(units.len(), 1);
                assert_eq!(Note::take(&mut units), note);
                assert_eq!(units, [Unit::user(vec!["hello".into()])]);
                note.put(&mut units, 1, archive);
                assert_eq!((units.len(), Note::take(&mut units).removed), (2, 7));
                assert_eq!(units.len(), 1, "a note alone is gone with its message");
            }
        }
    }

    #[test]
    fn a_number_that_somebody_made_up_does_no_harm() {
        let forged = Note { removed: usize::MAX, text: "me".into() }.write(false);
        let mut units = vec![Unit::user(vec![Part::text(forged.clone()), Part::text(forged)])];
        assert_eq!(Note::take(&mut units).removed, usize::MAX);
    }

    #[test]
    fn what_only_looks_like_a_note_is_left_alone() {
        let said = vec![Unit::user(vec!["<earlier_conversation messages=\"x\">\nhi\n</earlier_conversation>".into()])];
        let mut units = said.clone();
        assert_eq!((Note::take(&mut units), units), (Note::default(), said));
    }
}
