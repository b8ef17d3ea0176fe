//! What earlier attempts at a run noted: [`Known`].

use std::{collections::HashMap, sync::Arc};

use agent_core::{
    Question, RunIds,
    journal::{Entry, EntryBody},
};
use serde_json::Value;

/// The entries that earlier attempts at a run kept and this one did not note again yet. Driven again from its beginning, a run
/// notes the same entries at other times and, of steps side by side, in another order: they are told apart by what they say.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// How often each entry is there.
    entries: HashMap<String, u32>,
    /// The digests by which people know the questions, by what they ask.
    questions: HashMap<String, String>,
    /// Who drove the run last.
    driven: Option<Arc<RunIds>>,
}

impl Known {
    /// Takes an entry that is kept.
    pub(crate) fn add(&mut self, entry: &Entry) {
        if let EntryBody::RunStarted { ids, .. } | EntryBody::RunResumed { ids, .. } = &entry.body
            && ids.parent_run_id.is_none()
        {
            self.driven = Some(ids.clone());
            if takes_over(entry) {
                return; // no attempt notes it again
            }
        }
        *self.entries.entry(identity(entry)).or_default() += 1;
        if let EntryBody::Asked { question } = &entry.body {
            self.questions.entry(asked(&entry.run, question)).or_insert_with(|| question.digest.clone());
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
        // A question about a call in doubt is asked anew, with a digest of its own. Whoever saw the first one answers that.
        matches!(&entry.body, EntryBody::Asked { question } if self.digest(&entry.run, question).is_some())
    }

    /// What is to be noted first by an attempt that goes on with the run in this worker, if that is another one than the last.
    pub(crate) fn taken_over(&mut self, worker: &Arc<str>, attempt: &str, now: u64) -> Option<Entry> {
        let mut ids = self.driven.take().filter(|ids| ids.worker.as_ref() != Some(worker))?;
        Arc::make_mut(&mut ids).worker = Some(worker.clone());
        let (run, attempt) = (ids.run_id.clone(), format!("{attempt}/{worker}"));
        Some(Entry::new(run, now, EntryBody::RunResumed { ids, attempt }))
    }

    /// The digest by which people know a question that an earlier attempt asked.
    pub(crate) fn digest(&self, run: &str, question: &Question) -> Option<&str> {
        self.questions.get(&asked(run, question)).map(String::as_str)
    }
}

/// True if it is of a worker that [took over](Known::taken_over), and not of a run that went on after an answer: its attempt names the worker, too.
fn takes_over(entry: &Entry) -> bool {
    matches!(&entry.body, EntryBody::RunResumed { attempt, .. } if attempt.contains('/'))
}

/// What tells an entry apart from others, in every attempt: all that it says but the attempt's nonce and the worker.
fn identity(entry: &Entry) -> String {
    let mut body = serde_json::to_value(&entry.body).unwrap_or_default();
    if let Value::Object(kinds) = &mut body {
        for fields in kinds.values_mut().filter_map(Value::as_object_mut) {
            fields.remove("attempt");
            fields.get_mut("ids").and_then(Value::as_object_mut).and_then(|ids| ids.remove("worker"));
        }
    }
    format!("{}\n{body}", entry.run)
}

/// What a question asks, without its digest, which has the nonce of the attempt that asked it first. Two doubts about one call are
/// two questions: a doubt has the nonce of the attempt that began the call in its id.
fn asked(run: &str, question: &Question) -> String {
    let Question { id, kind, payload, .. } = question;
    format!("{run}\n{id}\n{kind} {payload}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(body: EntryBody) -> Entry {
        Entry::new("r".into(), 7, body)
    }

    fn begun(attempt: &str) -> Entry {
        let (call_id, name, attempt) = ("c".into(), "deed".into(), attempt.into());
        entry(EntryBody::ToolStarted { call_id, name, effect: agent_core::Effect::Pure, attempt })
    }

    fn doubt(began: &str, digest: &str) -> Question {
        let mut question = Question::new(format!("c/in_doubt/{began}"), "in_doubt", json!("did it happen?"));
        question.digest = digest.to_owned();
        question
    }

    fn asks(question: &Question) -> Entry {
        entry(EntryBody::Asked { question: Box::new(question.clone()) })
    }

    #[test]
    fn an_entry_of_another_attempt_is_known_as_often_as_it_was_kept() {
        let mut known = Known::default();
        known.add(&begun("one"));
        known.add(&begun("two"));
        assert_eq!(
            [known.has(&begun("three")), known.has(&begun("three")), known.has(&begun("three"))],
            [true, true, false]
        );
    }

    #[test]
    fn a_doubt_that_is_asked_anew_is_answered_as_whoever_saw_it_first_knows_it() {
        let mut known = Known::default();
        known.add(&asks(&doubt("a", "one")));
        assert!(known.has(&asks(&doubt("a", "two"))));
        assert_eq!(known.digest("r", &doubt("a", "two")), Some("one"));
    }

    fn started(worker: &str) -> Entry {
        let mut ids = RunIds::root("a", "s");
        (ids.run_id, ids.root_run_id) = ("r".into(), "r".into());
        ids.worker = Some(worker.into());
        entry(EntryBody::RunStarted { ids: Arc::new(ids), fingerprint: String::new() })
    }

    #[test]
    fn a_run_that_another_worker_takes_over_begins_once_and_says_who_goes_on() {
        let mut known = Known::default();
        known.add(&started("one"));
        let over = known.taken_over(&"two".into(), "second", 9).expect("another worker");
        assert!(known.has(&started("two")), "it began already");
        let mut later = Known::default();
        later.add(&started("one"));
        later.add(&over);
        assert_eq!(later.taken_over(&"two".into(), "third", 9), None, "the same worker goes on");
        assert!(later.has(&started("two")));
        assert!(!later.has(&over), "no attempt notes it");
    }

    #[test]
    fn a_second_doubt_about_a_call_is_a_question_of_its_own() {
        let mut known = Known::default();
        known.add(&asks(&doubt("a", "one")));
        assert!(!known.has(&asks(&doubt("b", "two"))));
        assert_eq!(known.digest("r", &doubt("b", "two")), None);
    }
}
