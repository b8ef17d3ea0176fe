//! Error for an answer that violates the schema.

use std::{error, fmt};

use agent_core::{Error, ErrorKind, Retry};

/// Reason why an answer was rejected: the source of an error of kind [`ErrorKind::InvalidAnswer`].
///
/// ```
/// use agent_tools::InvalidAnswer;
///
/// fn show(error: &agent_core::Error) {
///     if let Some(refused) = InvalidAnswer::of(error) {
///         println!("{} in:\n{}", refused.problems, refused.text);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidAnswer {
    /// Last text of the model.
    pub text: String,
    /// Description of all problems.
    pub problems: String,
}

impl InvalidAnswer {
    /// Returns the rejected answer that `error` is about, if any.
    pub fn of(error: &Error) -> Option<&Self> {
        error::Error::source(error)?.downcast_ref()
    }

    pub(super) fn into_error(self) -> Error {
        Error::new(
            ErrorKind::InvalidAnswer,
            format!("the answer has not the form that it must have: {}", self.problems),
        )
        .with_retry(Retry::Permanent)
        .with_source(self)
    }
}

impl fmt::Display for InvalidAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an answer of {} bytes was refused: {}", self.text.len(), self.problems)
    }
}

impl error::Error for InvalidAnswer {}
