//! Answers that are given when a run goes on: all of them are taken, or none.

use std::collections::BTreeMap;

use agent_core::{Answer, Checkpoint, Error, Journal, Question, Result, journal::EntryBody, run::Refusal};
use agent_tools::check_value;

/// How many entries are looked at at once.
const PAGE: usize = 1000;

/// The answers as the run takes them: each bound to its question.
///
/// # Errors
/// [`ErrorKind::AnswerRefused`](agent_core::ErrorKind::AnswerRefused) for the first that is none to a question of the
/// checkpoint, and those of the journal.
pub(super) async fn accepted(
    checkpoint: &Checkpoint,
    given: BTreeMap<String, Answer>,
    now: u64,
    journal: Option<&dyn Journal>,
) -> Result<BTreeMap<String, Answer>> {
    let mut taken = BTreeMap::new();
    for (id, mut answer) in given {
        let refused = |refusal: Refusal| Error::from(refusal).map_message(|why| format!("the answer to '{id}': {why}"));
        let Some(question) = checkpoint.questions.iter().find(|question| question.id == id) else {
            let asked = checkpoint.questions.iter().map(|question| question.id.clone()).collect();
            return Err(refused(Refusal::NotAsked { asked }));
        };
        question.admits(&answer, now).and_then(|()| fits(question, &answer)).map_err(refused)?;
        answer.digest.clone_from(&question.digest);
        taken.insert(id, answer);
    }
    if let (Some(journal), false) = (journal, taken.is_empty()) {
        used_before(journal, checkpoint, &taken).await?;
    }
    Ok(taken)
}

/// Looks at the form of the answer. A schema that is none lets nothing through.
fn fits(question: &Question, answer: &Answer) -> Result<(), Refusal> {
    let Some(schema) = &question.schema else { return Ok(()) };
    let check = check_value(schema).map_err(|e| Refusal::Misfit { problems: e.message().to_owned() })?;
    check(&answer.value).map_err(|problems| Refusal::Misfit { problems })
}

/// A checkpoint is a copy and may be given twice; the session's journal knows which questions were answered.
async fn used_before(journal: &dyn Journal, checkpoint: &Checkpoint, taken: &BTreeMap<String, Answer>) -> Result<()> {
    let mut after = 0;
    loop {
        let entries = journal.read(&checkpoint.ids.session, after, PAGE).await?;
        let Some(last) = entries.last() else { return Ok(()) };
        after = last.seq;
        for entry in &entries {
            let EntryBody::Answered { digest, .. } = &entry.body else { continue };
            if let Some((id, _)) = taken.iter().find(|(_, a)| !digest.is_empty() && *a.digest == **digest) {
                let refused =
                    |why: &str| format!("the answer to '{id}': {why}; recover the session to see where it is");
                return Err(Error::from(Refusal::Replayed).map_message(refused));
            }
        }
    }
}
