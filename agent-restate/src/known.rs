//! Entries and questions that earlier attempts at a run recorded: [`Known`].

use std::{collections::HashMap, sync::Arc};

use agent_core::{
    Question, RunIds,
    journal::{Entry, EntryBody},
};
use serde_json::Value;

/// Entries that earlier attempts at a run recorded and this attempt has not recorded again yet. An
/// attempt that replays the run records the same entries at other times and, for parallel steps, in
/// another order: entries are matched by their content.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Number of occurrences of each entry.
    entries: HashMap<String, u32>,
    /// Published digest of each question, by the question's content.
    questions: HashMap<String, String>,
    /// Ids of the most recent start or resumption of the run, with the worker that drove it.
    driven: Option<Arc<RunIds>>,
}

impl Known {
    /// Adds a recorded entry.
    pub(crate) fn add(&mut self, entry: &Entry) {
        if let EntryBody::RunStarted { ids, .. } | EntryBody::RunResumed { ids, .. } = &entry.body
            && ids.parent_run_id.is_none()
        {
            self.driven = Some(ids.clone());
            if takes_over(entry) {
                return; // no attempt records it again
            }
        }
        *self.entries.entry(identity(entry)).or_default() += 1;
        if let EntryBody::Asked { question } = &entry.body {
            self.questions.entry(asked(&entry.run, question)).or_insert_with(|| question.digest.clone());
        }
    }

    /// True if an earlier attempt recorded the entry. Consumes one occurrence.
    pub(crate) fn has(&mut self, entry: &Entry) -> bool {
        if self.entries.is_empty() {
            return false; // true in every first attempt
        }
        let identity = identity(entry);
        if let Some(times) = self.entries.get_mut(&identity) {
            *times -= 1;
            if *times == 0 {
                self.entries.remove(&identity);
            }
            return true;
        }
        // An attempt asks again about a call in doubt, with a new digest. Users who saw the first
        // question answer that one.
        matches!(&entry.body, EntryBody::Asked { question } if self.digest(&entry.run, question).is_some())
    }

    /// Returns the entry that an attempt records first if this worker is not the one that drove the
    /// run last.
    pub(crate) fn taken_over(&mut self, worker: &Arc<str>, attempt: &str, now: u64) -> Option<Entry> {
        let mut ids = self.driven.take().filter(|ids| ids.worker.as_ref() != Some(worker))?;
        Arc::make_mut(&mut ids).worker = Some(worker.clone());
        let (run, attempt) = (ids.run_id.clone(), format!("{attempt}/{worker}"));
        Some(Entry::new(run, now, EntryBody::RunResumed { ids, attempt }))
    }

    /// Returns the digest under which users know a question that an earlier attempt asked.
    pub(crate) fn digest(&self, run: &str, question: &Question) -> Option<&str> {
        self.questions.get(&asked(run, question)).map(String::as_str)
    }
}

/// True for an entry of a worker that [took over](Known::taken_over), whose attempt also names the
/// worker; false for a run that resumed after an answer.
fn takes_over(entry: &Entry) -> bool {
    matches!(&entry.body, EntryBody::RunResumed { attempt, .. } if attempt.contains('/'))
}

/// Returns the identity of an entry across attempts: its content without the attempt's nonce and
/// the worker.
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

/// Returns the content of a question without its digest, which contains the nonce of the attempt
/// that asked first. Two doubts about one call are two questions: the id of a doubt contains the
/// nonce of the attempt that began the call.
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
