//! Answers passed when a run resumes: either all are accepted, or none.

use std::collections::BTreeMap;

use agent_core::{
    Answer, Checkpoint, Error, Journal, Question, Result,
    journal::{EntryBody, each_entry},
    run::{Clock, Refusal},
};
use agent_tools::check_value;

/// Returns the answers as the run takes them: each bound to its question.
///
/// # Errors
/// [`ErrorKind::AnswerRefused`](agent_core::ErrorKind::AnswerRefused) for the first answer that
/// matches no question of the checkpoint.
pub(super) fn accepted(
    checkpoint: &Checkpoint,
    given: BTreeMap<String, Answer>,
    now: u64,
) -> Result<BTreeMap<String, Answer>> {
    let mut taken = BTreeMap::new();
    for (id, mut answer) in given {
        answer.digest.clone_from(&answered(checkpoint, &id, &answer, now)?.digest);
        taken.insert(id, answer);
    }
    Ok(taken)
}

/// Returns the question of the checkpoint that the answer belongs to, at the time `now`.
///
/// # Errors
/// [`ErrorKind::AnswerRefused`](agent_core::ErrorKind::AnswerRefused) if no open question admits
/// the answer.
fn answered<'a>(checkpoint: &'a Checkpoint, id: &str, answer: &Answer, now: u64) -> Result<&'a Question> {
    let refused = |refusal: Refusal| Error::from(refusal).map_message(|why| format!("the answer to '{id}': {why}"));
    let Some(question) = checkpoint.questions.iter().find(|question| question.id == id) else {
        let asked = checkpoint.questions.iter().map(|question| question.id.clone()).collect();
        return Err(refused(Refusal::NotAsked { asked }));
    };
    question.admits(answer, now).and_then(|()| fits(question, answer)).map_err(refused)?;
    Ok(question)
}

/// Checks an answer to the question `id` exactly as the resuming run would. For services that
/// accept answers on behalf of a run in another process, and can still report the error to the
/// author of the answer.
///
/// # Errors
/// [`ErrorKind::AnswerRefused`](agent_core::ErrorKind::AnswerRefused) if the run did not ask the
/// question, if the question has expired or was for another person, or if the answer does not match
/// the requested schema.
pub fn check_answer(checkpoint: &Checkpoint, id: &str, answer: &Answer) -> Result<()> {
    answered(checkpoint, id, answer, Clock::default().now())?;
    Ok(())
}

/// Validates the answer against the question's schema. An invalid schema rejects every answer.
fn fits(question: &Question, answer: &Answer) -> Result<(), Refusal> {
    let Some(schema) = &question.schema else { return Ok(()) };
    let check = check_value(schema).map_err(|e| Refusal::Misfit { problems: e.message().to_owned() })?;
    check(&answer.value).map_err(|problems| Refusal::Misfit { problems })
}

/// Returns the error for a checkpoint of which one of these answers was used before; `None` if all
/// are unused. A checkpoint is a copy and may be passed twice, but the session's journal knows
/// which questions were answered. This reads the journal from the start of the run, so call it only
/// if the checkpoint may be out of date.
///
/// # Errors
/// The errors of the journal.
pub(super) async fn used_before(
    journal: &dyn Journal,
    checkpoint: &Checkpoint,
    taken: &BTreeMap<String, Answer>,
) -> Result<Option<Error>> {
    if taken.is_empty() {
        return Ok(None);
    }
    let (session, run) = (&checkpoint.ids.session, &checkpoint.ids.run_id);
    // A snapshot knows a re-started run only from that start onwards.
    let index = journal.index(session).await?;
    let began = index.look(|index| if index.is_whole() { index.began(run) } else { 0 });
    let mut used = None;
    each_entry(journal, session, began.saturating_sub(1), |entry| {
        let EntryBody::Answered { digest, .. } = &entry.body else { return };
        if used.is_none() && !digest.is_empty() {
            used = taken.iter().find(|(_, answer)| *answer.digest == **digest).map(|(id, _)| id);
        }
    })
    .await?;
    Ok(used.map(|id| {
        let refused = |why: &str| format!("the answer to '{id}': {why}; recover the session to see where it is");
        Error::from(Refusal::Replayed).map_message(refused)
    }))
}
