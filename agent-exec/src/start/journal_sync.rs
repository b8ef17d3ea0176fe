//! Synchronises the session's journal with a checkpoint that differs from it.

use agent_core::{
    Checkpoint, Error, ErrorKind, Journal, Result,
    engine::RunLog,
    journal::{Liveness, liveness_of},
};

/// Entries to write before a run resumes from a checkpoint, so that the journal agrees with the
/// checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JournalSync {
    /// Write nothing: the journal knows the run, and nothing newer.
    #[default]
    UpToDate,
    /// Import the checkpoint: the run was stored elsewhere, or is a fork.
    Import,
    /// Undo the journal's version of the run, then import the checkpoint.
    Supersede,
}

impl JournalSync {
    /// Compares a checkpoint with the session's journal.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] if the run has advanced elsewhere, unless `allow_rewind` is set.
    pub(super) async fn of(journal: &dyn Journal, checkpoint: &Checkpoint, allow_rewind: bool) -> Result<Self> {
        let why = match liveness_of(journal, &checkpoint.ids).await? {
            Liveness::Unknown => return Ok(Self::Import),
            Liveness::Open { attempt: None } => return Ok(Self::UpToDate),
            // A checkpoint without the nonce was written by an earlier release.
            Liveness::Open { attempt } if checkpoint.attempt.is_none() || attempt == checkpoint.attempt => {
                return Ok(Self::UpToDate);
            }
            Liveness::Over(why) => why,
            _ => "the run went on from a newer one",
        };
        if allow_rewind {
            return Ok(Self::Supersede);
        }
        let (run, session) = (&checkpoint.ids.run_id, &checkpoint.ids.session);
        let message = format!(
            "the checkpoint of run '{run}' in session '{session}' is out of date: {why}. Go on with what the journal knows \
             (RunRequest::recover), fork the session, or say allow_rewind() to go back"
        );
        Err(Error::new(ErrorKind::Stale, message))
    }

    /// Records the state of the run and of its suspended descendants.
    pub(super) fn record(self, log: &RunLog, checkpoint: &Checkpoint) {
        match self {
            Self::UpToDate => {}
            Self::Import => log.import(checkpoint),
            Self::Supersede => log.supersede(checkpoint),
        }
    }
}
