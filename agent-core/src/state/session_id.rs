//! Names of sessions that no user can forge.

use std::{fmt, sync::Arc};

/// The session of a user, as the journal names it. Both parts may be any text, whoever chose it: two different pairs never
/// have one name, and no name that begins as a user's sessions do belongs to another.
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
    /// This session of this user.
    pub fn new(user: impl Into<String>, session: impl Into<String>) -> Self {
        Self { user: user.into(), session: session.into() }
    }

    /// Reads the name of a session; `None` if it is not of this form.
    pub fn parse(name: &str) -> Option<Self> {
        let (user, session) = name.split_once('/')?;
        let id = Self { user: unescape(user)?, session: unescape(session)? };
        (id.to_string() == name).then_some(id)
    }

    /// The user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The session, as the user knows it.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The session `SESSION/NAME` of the same user, for what belongs to this session and has one of its own.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        Self::new(self.user.as_str(), format!("{}/{name}", self.session))
    }

    /// How the names of all sessions of `user` begin.
    pub fn prefix(user: &str) -> String {
        format!("{}/", escape(user))
    }
}

/// The text without the character that parts a name.
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
