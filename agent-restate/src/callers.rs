//! Chain of runs that wait for a called run: [`Callers`].

use std::sync::Arc;

use agent_core::{Error, Result};
use restate_sdk::endpoint::InputMetadata;
use serde::{Deserialize, Serialize};

/// Header of a call that carries the sessions of the calling runs.
const HEADER: &str = "agent-callers";

/// Sessions whose runs wait for a run, outermost first; the last one is the run's own session.
#[derive(Clone, Debug)]
pub(crate) struct Callers(Vec<Caller>);

/// A session of a Restate service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Caller {
    service: Arc<str>,
    session: Arc<str>,
}

impl Callers {
    /// Reads the chain from an invocation's headers and appends the invocation's own session.
    /// Ignores a header that does not parse.
    pub(crate) fn of(service: &str, invocation: &InputMetadata) -> Self {
        let above = invocation.headers.get(HEADER).and_then(|above| serde_json::from_str(above).ok());
        let mut all: Vec<_> = above.unwrap_or_default();
        all.push(Caller { service: service.into(), session: invocation.key.as_str().into() });
        Self(all)
    }

    /// Returns the header that passes this chain on to a called run.
    pub(crate) fn header(&self) -> (String, String) {
        (HEADER.to_owned(), serde_json::to_string(&self.0).unwrap_or_default())
    }

    /// Rejects a call that would wait for itself or exceeds the maximum call depth.
    pub(crate) fn let_call(&self, service: Option<&Arc<str>>, session: &Arc<str>, max_depth: u32) -> Result<()> {
        let own = self.0.last().map(|own| &own.service);
        let called = service.or(own).zip(Some(session));
        if self.0.iter().any(|above| Some((&above.service, &above.session)) == called) {
            return Err(Error::config(format!(
                "session '{session}' cannot be called: one of its runs waits for this one, so the call would never end. Call the agent in another session"
            )));
        }
        let above = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if above > max_depth {
            return Err(Error::tool(format!(
                "The agent was not called: remote agents may be called at most {max_depth} deep. Do the task yourself."
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use agent_core::ErrorKind;

    use super::*;

    #[test]
    fn a_session_above_is_not_called_nor_one_too_deep() {
        let caller = |session: &str| Caller { service: "S".into(), session: session.into() };
        let callers = Callers(vec![caller("top"), caller("middle")]);
        let refused = |service: Option<&str>, session: &str, most| {
            let refused = callers.let_call(service.map(Into::into).as_ref(), &session.into(), most);
            refused.err().map(|e| e.kind())
        };
        assert_eq!(refused(None, "top", 9), Some(ErrorKind::Config));
        assert_eq!(refused(Some("S"), "middle", 9), Some(ErrorKind::Config));
        assert_eq!(refused(Some("Other"), "top", 9), None, "a session of another service");
        assert_eq!(refused(None, "new", 2), None);
        assert_eq!(refused(None, "new", 1), Some(ErrorKind::Tool));
    }
}
