//! Questions and checkpoint carried by an [`Error`] of a suspended run.

use super::{Checkpoint, Question};
use crate::error::{Error, ErrorKind};

/// Open questions and the checkpoint of the run.
#[derive(Default)]
struct Suspension {
    questions: Vec<Question>,
    checkpoint: Option<Box<Checkpoint>>,
}

impl Suspension {
    fn of(error: &Error) -> Option<&Self> {
        error.suspension()?.downcast_ref()
    }

    /// Returns the error's suspension, creating it if necessary.
    fn of_mut(error: &mut Error) -> Option<&mut Self> {
        error.suspension_mut().get_or_insert_with(|| Box::<Self>::default()).downcast_mut()
    }

    fn attach(self, mut error: Error) -> Error {
        *error.suspension_mut() = Some(Box::new(self));
        error
    }
}

impl Error {
    /// Creates the error of a run that must wait for the answer to `question`.
    pub fn interrupted(question: Question) -> Self {
        Self::waiting(vec![question])
    }

    /// Creates the error of a run that waits for the answers to these questions.
    pub(crate) fn waiting(questions: Vec<Question>) -> Self {
        let waits = Suspension { questions, checkpoint: None };
        waits.attach(Self::new(ErrorKind::Interrupted, "waiting for an answer"))
    }

    /// Creates the error of a caller whose sub-agent is suspended at `child`; the sub-agent's
    /// questions become the caller's, prefixed with `call_id/`.
    pub fn suspended(call_id: &str, child: Checkpoint) -> Self {
        let questions = child.questions.iter().map(|question| question.under(call_id)).collect();
        let waits = Suspension { questions, checkpoint: Some(Box::new(child)) };
        waits.attach(Self::new(ErrorKind::Interrupted, "a sub-agent is suspended"))
    }

    /// Attaches the run's checkpoint, from which it can be resumed.
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        if let Some(waits) = Suspension::of_mut(&mut self) {
            waits.checkpoint = Some(Box::new(checkpoint));
        }
        self
    }

    /// The questions to answer before the run continues; empty unless the kind is
    /// [`ErrorKind::Interrupted`].
    pub fn questions(&self) -> &[Question] {
        Suspension::of(self).map_or(&[], |waits| &waits.questions)
    }

    /// The checkpoint of the failed or suspended run.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        Suspension::of(self)?.checkpoint.as_deref()
    }

    /// Like [`checkpoint`](Self::checkpoint), mutable.
    pub fn checkpoint_mut(&mut self) -> Option<&mut Checkpoint> {
        self.suspension_mut().as_mut()?.downcast_mut::<Suspension>()?.checkpoint.as_deref_mut()
    }

    /// Takes the questions and the checkpoint.
    pub fn into_suspension(mut self) -> (Vec<Question>, Option<Box<Checkpoint>>) {
        let waits = self.suspension_mut().take().and_then(|waits| waits.downcast::<Suspension>().ok());
        waits.map_or_else(Default::default, |waits| (waits.questions, waits.checkpoint))
    }
}
