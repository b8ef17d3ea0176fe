//! How a cassette is used: [`CassetteMode`] and [`CassetteBuilder`].

use std::{path::PathBuf, sync::Arc};

use agent_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Cassette, matching::Ignored, scrub::Scrubber, session::Session};
use crate::{Transport, model::default_transport};

/// The environment variable that [`Cassette::open`] reads.
pub(super) const VARIABLE: &str = "AGENT_CASSETTE";

/// Whether a cassette replays or records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CassetteMode {
    /// Only what is on the tape: nothing is sent. In the environment: `replay`.
    #[default]
    Replay,
    /// What is on the tape is replayed, and what is not is sent and recorded. In the environment: `missing`.
    RecordMissing,
    /// Everything is sent, and the tape is recorded anew. In the environment: `all`.
    RecordAll,
}

impl CassetteMode {
    /// The mode that the environment variable `AGENT_CASSETTE` says: `replay`, `missing` or `all`. Default: `replay`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for any other word.
    pub fn from_env() -> Result<Self> {
        Self::parse(std::env::var(VARIABLE).ok().as_deref())
    }

    fn parse(word: Option<&str>) -> Result<Self> {
        match word.map(str::trim) {
            None | Some("" | "replay") => Ok(Self::Replay),
            Some("missing") => Ok(Self::RecordMissing),
            Some("all") => Ok(Self::RecordAll),
            Some(other) => Err(Error::config(format!("{VARIABLE} is '{other}': say replay, missing or all"))),
        }
    }
}

/// Sets up a [`Cassette`].
///
/// ```
/// use agent_llm::{Cassette, CassetteMode};
///
/// # let file = tempfile::tempdir().expect("a folder").path().join("tape.json");
/// let tape = Cassette::builder(file)
///     .mode(CassetteMode::RecordMissing)
///     .ignore("/metadata/request_id")
///     .ignore("/messages/*/id")
///     .secret("the-name-of-our-customer")
///     .build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[must_use]
pub struct CassetteBuilder {
    path: PathBuf,
    mode: Option<CassetteMode>,
    transport: Option<Arc<dyn Transport>>,
    ignored: Vec<String>,
    ignores_host: bool,
    secrets: Vec<String>,
    fields: Vec<String>,
}

impl CassetteBuilder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            mode: None,
            transport: None,
            ignored: Vec::new(),
            ignores_host: false,
            secrets: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Sets whether it replays or records. Default: [`CassetteMode::from_env`].
    pub fn mode(mut self, mode: CassetteMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets how requests travel that are recorded. Default: a [`HttpTransport`](crate::HttpTransport).
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Compares requests without this field of a JSON body: what is another in every run. It is a JSON Pointer in which `*` is
    /// any name or index, as in `/messages/*/id`.
    pub fn ignore(mut self, pointer: impl Into<String>) -> Self {
        self.ignored.push(pointer.into());
        self
    }

    /// Compares requests without scheme and host: for tapes that serve several servers.
    pub fn ignore_host(mut self) -> Self {
        self.ignores_host = true;
        self
    }

    /// Takes a text out wherever it stands, as it does with keys. At least 8 characters: a shorter one is no secret.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Takes out the text of all fields of this name in JSON bodies and addresses, whatever its case, `-` and `_`.
    pub fn secret_field(mut self, name: impl Into<String>) -> Self {
        self.fields.push(name.into());
        self
    }

    /// Opens the cassette. A tape that is to be recorded anew is left as it is until there is something to record.
    ///
    /// # Errors
    /// [`Store`](agent_core::ErrorKind::Store) if a tape that is to be replayed cannot be read;
    /// [`Config`](agent_core::ErrorKind::Config) for what is no JSON Pointer, for an unknown word in `AGENT_CASSETTE`, or if
    /// there is no transport to record with.
    pub fn build(self) -> Result<Cassette> {
        let mode = self.mode.map_or_else(CassetteMode::from_env, Ok)?;
        let ignored = Ignored::new(&self.ignored, self.ignores_host)?;
        let transport = match mode {
            CassetteMode::Replay => None,
            _ => Some(self.transport.map_or_else(default_transport, Ok)?),
        };
        let scrubber = Scrubber::new(&self.secrets, &self.fields);
        Session::open(self.path, mode, transport, ignored, scrubber).map(Cassette)
    }
}

impl std::fmt::Debug for CassetteBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CassetteBuilder")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .field("ignored", &self.ignored)
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_the_mode() {
        for (word, mode) in [
            (None, CassetteMode::Replay),
            (Some(""), CassetteMode::Replay),
            (Some("missing"), CassetteMode::RecordMissing),
            (Some(" all "), CassetteMode::RecordAll),
        ] {
            assert_eq!(CassetteMode::parse(word).expect("known"), mode);
        }
        assert!(
            CassetteMode::parse(Some("yes")).expect_err("unknown").message().contains("say replay, missing or all")
        );
    }
}
