//! Names of runs and sessions.
//!
//! A client's session is `SessionId::new(tenant, name)` in the store, so that names of tenants
//! never collide. A run's id contains its session's name, so that any process finds the run without
//! an index; it is looked up only among the caller's sessions, so that a forged id reveals nothing
//! about other tenants.

use std::sync::Arc;

use agent::{
    SessionId,
    run::{RunIds, new_id},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::{caller::Caller, error::ApiError};

/// Maximum size of a session name in bytes.
const LONGEST: usize = 200;

/// Id of a new run, and name of its session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) run: String,
    pub(super) session: String,
}

impl Named {
    /// Names a run in this session, or in a new one. The same key of the same subject and protocol
    /// yields the same names.
    pub(super) fn new(
        caller: &Caller,
        agent: &str,
        session: Option<&str>,
        key: Option<&Key>,
    ) -> Result<Self, ApiError> {
        session.map_or(Ok(()), check)?;
        let of_this = |key: &Key| {
            let (tenant, subject, session) = (caller.tenant(), caller.subject(), session.unwrap_or_default());
            of_key(&[tenant, subject, key.protocol, agent, session, &key.key])
        };
        let id = key.map_or_else(new_id, of_this);
        Ok(match session {
            Some(session) => Self { run: format!("{id}.{}", URL_SAFE_NO_PAD.encode(session)), session: session.into() },
            None => Self { session: id.clone(), run: id },
        })
    }
}

/// Idempotency key of a request.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// Protocol that the key belongs to: protocols number their messages independently.
    pub(super) protocol: &'static str,
    pub(super) key: String,
}

/// Validates a session name.
pub(super) fn check(session: &str) -> Result<(), ApiError> {
    if session.is_empty() || session.len() > LONGEST || session.chars().any(char::is_control) {
        let message = format!("invalid session name: it must have 1 to {LONGEST} bytes and no control characters");
        return Err(ApiError::invalid(message));
    }
    Ok(())
}

/// Returns the session name in a run's id.
pub(super) fn session_of(run: &str) -> Option<String> {
    match run.split_once('.') {
        None => Some(run.to_owned()),
        Some((_, encoded)) => String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok(),
    }
}

/// Returns the beginning of the names of a tenant's sessions in the store.
pub(super) fn prefix(tenant: &str) -> String {
    SessionId::new(tenant, "").to_string()
}

/// Returns the name by which clients know a session of the store.
pub(super) fn public(session: &Arc<str>) -> Arc<str> {
    SessionId::parse(session).map_or_else(|| session.clone(), |id| id.session().into())
}

/// Returns the ids of an event in the form for clients.
pub(crate) fn public_ids(ids: &RunIds) -> RunIds {
    let mut ids = ids.clone();
    (ids.session, ids.user) = (public(&ids.session), None);
    ids
}

/// Derives an id from these words.
pub(super) fn of_key(words: &[&str]) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_knows_its_session_and_a_key_its_run() {
        let ada = Caller::new("t", "ada");
        let named = Named::new(&ada, "a", Some("trip/2"), None).expect("a name");
        assert_eq!(session_of(&named.run).as_deref(), Some("trip/2"));
        let alone = Named::new(&ada, "a", None, None).expect("a name");
        assert_eq!(session_of(&alone.run), Some(alone.session));
        let keyed = |tenant: &str, subject: &str, protocol, key: &str| {
            let key = Key { protocol, key: key.to_owned() };
            Named::new(&Caller::new(tenant, subject), "a", Some("s"), Some(&key)).expect("a name").run
        };
        assert_eq!(keyed("t", "x", "", "k"), keyed("t", "x", "", "k"));
        for other in
            [keyed("u", "x", "", "k"), keyed("t", "y", "", "k"), keyed("t", "x", "a2a", "k"), keyed("t", "x", "", "l")]
        {
            assert_ne!(keyed("t", "x", "", "k"), other);
        }
    }

    #[test]
    fn a_name_that_cannot_be_is_refused() {
        let long = "x".repeat(LONGEST + 1);
        for bad in ["", "a\nb", &long] {
            assert!(Named::new(&Caller::new("t", "ada"), "a", Some(bad), None).is_err(), "{bad}");
        }
        assert_eq!(session_of("x.not base64!"), None);
    }
}
