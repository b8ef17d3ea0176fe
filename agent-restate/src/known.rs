//! What earlier attempts at a run noted: [`Known`].

use std::collections::HashMap;

use agent_core::journal::{Entry, EntryBody};
use serde_json::Value;

/// The entries that earlier attempts at a run kept and this one did not note again yet. Driven again from its beginning, a run
/// notes the same entries at other times and, of steps side by side, in another order: they are told apart by what they say.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// How often each entry is there.
    entries: HashMap<String, u32>,
    /// The digests of the questions without an answer, by what they ask.
    open: HashMap<String, String>,
    /// Which digest people know of a question that this attempt asks by another.
    digests: HashMap<String, String>,
}

impl Known {
    /// Takes an entry that is kept.
    pub(crate) fn add(&mut self, entry: &Entry) {
        *self.entries.entry(identity(entry)).or_default() += 1;
        match &entry.body {
            EntryBody::Asked { question } => _ = self.open.insert(asked(entry), question.digest.clone()),
            EntryBody::Answered { id, .. } => {
                let prefix = format!("{}\n{id}\n", entry.run);
                self.open.retain(|asked, _| !asked.starts_with(&prefix));
            }
            _ => {}
        }
    }

    /// True if the entry is kept already. It is not known any more then.
    pub(crate) fn has(&mut self, entry: &Entry) -> bool {
        if self.entries.is_empty() {
            return false; // as in every first attempt
        }
        let identity = identity(entry);
        if let Some(times) = self.entries.get_mut(&identity) {
            *times -= 1;
            if *times == 0 {
                self.entries.remove(&identity);
            }
            return true;
        }
        // A question that is asked anew has a digest of its own. Whoever saw the first one answers that.
        let EntryBody::Asked { question } = &entry.body else { return false };
        let Some(digest) = self.open.remove(&asked(entry)) else { return false };
        self.digests.insert(question.digest.clone(), digest);
        true
    }

    /// The digest that people know of the question of this digest.
    pub(crate) fn digest<'a>(&'a self, digest: &'a str) -> &'a str {
        self.digests.get(digest).map_or(digest, String::as_str)
    }
}

/// What tells an entry apart from others, in every attempt: all that it says but the attempt's nonce.
fn identity(entry: &Entry) -> String {
    let mut body = serde_json::to_value(&entry.body).unwrap_or_default();
    if let Value::Object(kinds) = &mut body {
        kinds.values_mut().filter_map(Value::as_object_mut).for_each(|fields| _ = fields.remove("attempt"));
    }
    format!("{}\n{body}", entry.run)
}

/// What a question asks, without its digest, which has the nonce of the attempt that asked it first.
fn asked(entry: &Entry) -> String {
    let EntryBody::Asked { question } = &entry.body else { return String::new() };
    format!("{}\n{}\n{} {}", entry.run, question.id, question.kind, question.payload)
}

#[cfg(test)]
mod tests {
    use agent_core::{Answer, Question};
    use serde_json::json;

    use super::*;

    fn entry(body: EntryBody) -> Entry {
        Entry::new("r".into(), 7, body)
    }

    fn begun(attempt: &str) -> Entry {
        let (call_id, name, attempt) = ("c".into(), "deed".into(), attempt.into());
        entry(EntryBody::ToolStarted { call_id, name, effect: agent_core::Effect::Pure, attempt })
    }

    fn asks(digest: &str) -> Entry {
        let mut question = Question::new("q", "doubt", json!("did it happen?"));
        question.digest = digest.to_owned();
        entry(EntryBody::Asked { question: Box::new(question) })
    }

    #[test]
    fn an_entry_of_another_attempt_is_known_as_often_as_it_was_kept() {
        let mut known = Known::default();
        known.add(&begun("one"));
        known.add(&begun("two"));
        assert_eq!([known.has(&begun("three")), known.has(&begun("three")), known.has(&begun("three"))], [true, true, false]);
    }

    #[test]
    fn a_question_that_is_asked_anew_is_answered_as_whoever_saw_it_first_knows_it() {
        let mut known = Known::default();
        known.add(&asks("one"));
        assert!(known.has(&asks("two")));
        assert_eq!((known.digest("two"), known.digest("three")), ("one", "three"));
    }

    #[test]
    fn an_answered_question_is_another_than_the_next_one_that_asks_the_same() {
        let mut known = Known::default();
        known.add(&asks("one"));
        known.add(&entry(EntryBody::answered("q", &Answer::from(json!("did_not")))));
        assert!(!known.has(&asks("two")), "an answer to the first one is not one to this");
        assert_eq!(known.digest("two"), "two");
    }
}
