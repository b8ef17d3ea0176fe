//! Answers that are given when a run goes on: all of them are taken, or none.

use std::collections::BTreeMap;

use agent_core::{
    Answer, Checkpoint, Error, Journal, Question, Result,
    journal::{EntryBody, each_entry},
    run::{Clock, Refusal},
};
use agent_tools::check_value;

/// The answers as the run takes them: each bound to its question.
///
/// # Errors
/// [`ErrorKind::AnswerRefused`](agent_core::ErrorKind::AnswerRefused) for the first that is none to a question of the
/// checkpoint.
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

/// The question of the checkpoint that the answer is one to, at `now`.
///
/// # Errors
/// [`ErrorKind::AnswerRefused`](agent_core::ErrorKind::AnswerRefused) if it is none.
fn answered<'a>(checkpoint: &'a Checkpoint, id: &str, answer: &Answer, now: u64) -> Result<&'a Question> {
    let refused = |refusal: Refusal| Error::from(refusal).map_message(|why| format!("the answer to '{id}': {why}"));
    let Some(question) = checkpoint.questions.iter().find(|question| question.id == id) else {
        let asked = checkpoint.questions.iter().map(|question| question.id.clone()).collect();
        return Err(refused(Refusal::NotAsked { asked }));
    };
    question.admits(answer, now).and_then(|()| fits(question, answer)).map_err(refused)?;
    Ok(question)
}

/// Checks an answer as the run does that goes on with it, `id` being that of its question: for whoever takes answers for a run that another process goes on
/// with, and can still tell who gave them.
///
/// # Errors
/// [`ErrorKind::AnswerRefused`](agent_core::ErrorKind::AnswerRefused) if the run does not ask that, if the question has ended or was for somebody else, or if
/// the answer has another form than it wants.
pub fn check_answer(checkpoint: &Checkpoint, id: &str, answer: &Answer) -> Result<()> {
    answered(checkpoint, id, answer, Clock::default().now())?;
    Ok(())
}

/// Looks at the form of the answer. A schema that is none lets nothing through.
fn fits(question: &Question, answer: &Answer) -> Result<(), Refusal> {
    let Some(schema) = &question.schema else { return Ok(()) };
    let check = check_value(schema).map_err(|e| Refusal::Misfit { problems: e.message().to_owned() })?;
    check(&answer.value).map_err(|problems| Refusal::Misfit { problems })
}

/// The refusal of a checkpoint of which one of these answers was used before; none if none of them was. A checkpoint is a copy
/// and may be given twice; the session's journal knows which questions were answered. It is read from where the run began, so ask
/// only where the checkpoint may be out of date.
///
/// # Errors
/// Those of the journal.
pub(super) async fn used_before(
    journal: &dyn Journal,
    checkpoint: &Checkpoint,
    taken: &BTreeMap<String, Answer>,
) -> Result<Option<Error>> {
    if taken.is_empty() {
        return Ok(None);
    }
    let (session, run) = (&checkpoint.ids.session, &checkpoint.ids.run_id);
    // An anchor knows a run that began again from then on alone.
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
