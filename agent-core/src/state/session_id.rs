//! Session names that a user cannot forge.

use std::{fmt, sync::Arc};

/// Name of a user's session. Both parts may be arbitrary, untrusted text: two different pairs never
/// have the same name, and no name with the prefix of a user's sessions belongs to another user.
///
/// ```
/// use agent_core::{RunRequest, run::SessionId};
///
/// let mine = SessionId::new("ada", "trip/2");
/// let forged = SessionId::new("ada/trip", "2");
/// assert_ne!(mine.to_string(), forged.to_string());
/// assert_eq!(SessionId::parse(&mine.to_string()), Some(mine.clone()));
/// let request = RunRequest::user("Where were we?").session(mine);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    user: String,
    session: String,
}

impl SessionId {
    /// Creates the id of `session` of `user`.
    pub fn new(user: impl Into<String>, session: impl Into<String>) -> Self {
        Self { user: user.into(), session: session.into() }
    }

    /// Parses the name of a session; `None` if it does not have this form.
    pub fn parse(name: &str) -> Option<Self> {
        let (user, session) = name.split_once('/')?;
        let id = Self { user: unescape(user)?, session: unescape(session)? };
        (id.to_string() == name).then_some(id)
    }

    /// The user part.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The session part, as the user knows it.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The session `SESSION/NAME` of the same user, for data that belongs to this session and needs
    /// a separate one.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        Self::new(self.user.as_str(), format!("{}/{name}", self.session))
    }

    /// Prefix of the names of all sessions of `user`.
    pub fn prefix(user: &str) -> String {
        format!("{}/", escape(user))
    }
}

/// Escapes the separator of a name.
fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('/', "%2F")
}

fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        plain.push(match code {
            "25" => '%',
            "2F" => '/',
            _ => return None,
        });
        plain.push_str(rest);
    }
    Some(plain)
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::prefix(&self.user))?;
        f.write_str(&escape(&self.session))
    }
}

impl From<SessionId> for Arc<str> {
    fn from(id: SessionId) -> Self {
        id.to_string().into()
    }
}

impl From<&SessionId> for Arc<str> {
    fn from(id: &SessionId) -> Self {
        id.to_string().into()
    }
}
