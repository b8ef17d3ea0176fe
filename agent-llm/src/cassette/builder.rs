//! Configuration of a cassette: [`CassetteMode`] and [`CassetteBuilder`].

use std::{path::PathBuf, sync::Arc};

use agent_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Cassette, matching::Ignored, scrub::Scrubber, session::Session};
use crate::{Transport, model::default_transport};

/// Environment variable that [`Cassette::open`] reads.
pub(super) const VARIABLE: &str = "AGENT_CASSETTE";

/// Replay or record mode of a cassette.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CassetteMode {
    /// Replays recorded exchanges only; sends nothing. Environment value: `replay`.
    #[default]
    Replay,
    /// Replays recorded exchanges, and sends and records the others. Environment value: `missing`.
    RecordMissing,
    /// Sends every request, and records the tape from scratch. Environment value: `all`.
    RecordAll,
}

impl CassetteMode {
    /// Returns the mode that the environment variable `AGENT_CASSETTE` selects: `replay`, `missing`
    /// or `all`. Default: `replay`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for any other value.
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

/// Builder of a [`Cassette`].
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

    /// Sets the mode. Default: [`CassetteMode::from_env`].
    pub fn mode(mut self, mode: CassetteMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets the transport for requests that are recorded. Default: an
    /// [`HttpTransport`](crate::HttpTransport).
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Ignores this field of JSON bodies when comparing requests, for values that differ between
    /// runs. `pointer` is a JSON Pointer in which `*` matches any name or index, as in
    /// `/messages/*/id`.
    pub fn ignore(mut self, pointer: impl Into<String>) -> Self {
        self.ignored.push(pointer.into());
        self
    }

    /// Ignores scheme and host when comparing requests, for tapes that serve several servers.
    pub fn ignore_host(mut self) -> Self {
        self.ignores_host = true;
        self
    }

    /// Redacts a text wherever it occurs, like keys. It needs at least 8 characters; shorter texts
    /// are not treated as secrets.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Redacts the text of all fields of this name in JSON bodies and URLs, ignoring case, `-` and
    /// `_`.
    pub fn secret_field(mut self, name: impl Into<String>) -> Self {
        self.fields.push(name.into());
        self
    }

    /// Opens the cassette. With [`CassetteMode::RecordAll`] an existing tape is not touched until
    /// there is something to record.
    ///
    /// # Errors
    /// [`Store`](agent_core::ErrorKind::Store) if a tape to replay cannot be read;
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid JSON Pointer, for an unknown value
    /// of `AGENT_CASSETTE`, or if there is no transport to record with.
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
