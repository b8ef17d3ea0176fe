//! Simulated person who answers the questions of suspended runs.

use std::{collections::HashSet, path::PathBuf, time::Duration};

use agent::{
    PostgresJournal, PostgresQueue, Result,
    core::{BoxError, Journal},
    dispatch::{Dispatch, JobStatusKind, QueueAdmin, QueuedJob, Wanted},
};
use tokio::time::sleep;

use crate::kill_test::{child::answers, counter::Counter};

/// Answers from the count of external effects, forever.
pub(super) async fn answer(queue: PostgresQueue, journal: PostgresJournal, dir: PathBuf) {
    let resting = Wanted::default().standing(JobStatusKind::AtRest);
    let Ok(counter) = Counter::open(&dir) else { return };
    loop {
        for job in queue.jobs(&resting).await.unwrap_or_default() {
            if let Err(e) = answer_one(&queue, &journal, &counter, &job).await {
                eprintln!("\n{e}"); // the database is down: the question stays open
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}

async fn answer_one(
    queue: &PostgresQueue,
    journal: &PostgresJournal,
    counter: &Counter,
    job: &QueuedJob,
) -> Result<(), BoxError> {
    let at = &job.job.at;
    let Some(stands) = journal.index(&at.session).await?.look(|index| index.unfinished(&at.agent)) else {
        return Ok(());
    };
    let open: HashSet<_> = stands.questions.iter().map(|question| &question.id).collect();
    let answers = answers(&stands, counter).into_iter().filter(|(id, _)| open.contains(id));
    Ok(queue.answer(at, answers.map(|(id, value)| (id, value.into())).collect()).await?)
}
