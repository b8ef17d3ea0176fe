//! All problems of a definition.

use std::{
    fmt::{self, Display},
    sync::Arc,
};

use agent_core::{Error, Result};

/// One problem of a definition.
///
/// ```
/// use agent_exec::{AgentDefinition, DefinitionProblem, Registry};
///
/// let definition = r#"{"name": "a", "model": "small", "tools": ["read"]}"#;
/// let definition: AgentDefinition = serde_json::from_str(definition).unwrap();
/// let error = Registry::new().builder(&definition).unwrap_err();
/// let places: Vec<_> = DefinitionProblem::of(&error).iter().map(|problem| problem.pointer.as_str()).collect();
/// assert_eq!(places, ["/model", "/tools/0"]);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DefinitionProblem {
    /// JSON Pointer to the location in the definition.
    pub pointer: String,
    /// The error at that location.
    pub error: Arc<Error>,
    /// The text of this problem in the combined error message.
    said: String,
}

impl DefinitionProblem {
    /// Returns the problems behind an error of [`Registry::builder`](super::Registry::builder);
    /// empty for other errors.
    pub fn of(error: &Error) -> &[Self] {
        std::error::Error::source(error)
            .and_then(|source| source.downcast_ref())
            .map_or(&[], |Found(problems)| problems)
    }
}

/// The problems found so far.
#[derive(Default)]
pub(super) struct Problems(Vec<DefinitionProblem>);

impl Problems {
    pub(super) fn at<T>(&mut self, pointer: impl Display, found: Result<T>) -> Option<T> {
        found.map_err(|error| self.push(pointer, error)).ok()
    }

    fn push(&mut self, pointer: impl Display, error: Error) {
        let said = error.message().to_owned();
        self.0.push(DefinitionProblem { pointer: pointer.to_string(), error: Arc::new(error), said });
    }

    /// As [`at`](Self::at), for the sub-agent with this key: its own problems keep their locations.
    pub(super) fn under<T>(&mut self, key: &str, found: Result<T>) -> Option<T> {
        let pointer = format!("/sub_agents/{key}/agent");
        let error = match found {
            Ok(found) => return Some(found),
            Err(error) => error,
        };
        match DefinitionProblem::of(&error) {
            [] => self.push(pointer, error.map_message(|why| format!("sub-agent '{key}': {why}"))),
            inner => self.0.extend(inner.iter().map(|problem| DefinitionProblem {
                pointer: format!("{pointer}{}", problem.pointer),
                error: problem.error.clone(),
                said: format!("sub-agent '{key}': {}", problem.said),
            })),
        }
        None
    }

    /// Returns `found` if there are no problems.
    ///
    /// # Errors
    /// All problems.
    pub(super) fn end<T>(self, found: Option<T>) -> Result<T> {
        match found {
            Some(found) if self.0.is_empty() => Ok(found),
            _ => {
                let found = Found(self.0);
                Err(Error::config(found.to_string()).with_source(found))
            }
        }
    }
}

#[derive(Debug)]
struct Found(Vec<DefinitionProblem>);

impl Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            f.write_str(&problem.said)?;
        }
        Ok(())
    }
}

impl std::error::Error for Found {}
