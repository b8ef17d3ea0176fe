//! Engines of runs: this process, workers over PostgreSQL, or services of Restate.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc};

use agent::{
    Error, ErrorKind, PostgresQueue, PostgresRelay, Result, async_trait, config::StoreAddress, dispatch::ChunkRelay,
    store::PostgresQueueBuilder,
};
use agent_restate::{BlobStore, Restate, RestateBuilder, RestateJournal, open_blobs};
use agent_server::Notes;
use serde_json::Value;
use url::Url;

/// Seconds for which a process that died keeps its runs from others, unless it is said.
pub(crate) const LEASE: u64 = 30;

/// Engine of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The process that is asked.
    #[default]
    Here,
    /// Workers, by a queue beside the store.
    Workers,
    /// Services of a Restate server.
    Restate(RestateAddress),
}

/// Address of a Restate server, and the storage that its services share.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RestateAddress {
    ingress: String,
    admin: String,
    /// Storage of values that are too large for its journal.
    blobs: Option<String>,
    /// The name of the service, if it is not the usual one.
    service: Option<String>,
}

/// Form of an address.
const ADDRESS: &str =
    "restate://HOST:PORT (restates:// by TLS), with ?admin=URL, &blobs=PLACE and &service=NAME as needed";

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "embedded" => Ok(Self::Here),
            "workers" => Ok(Self::Workers),
            _ if text.contains("://") => text.parse().map(Self::Restate),
            _ => Err(format!("an engine is 'embedded', 'workers' or {ADDRESS}")),
        }
    }
}

impl Engine {
    /// Refuses what was given of these options, which mean nothing with this engine.
    ///
    /// # Errors
    /// If one was.
    pub(crate) fn refuse(&self, options: &[(&str, bool)]) -> Result<()> {
        match options.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                Err(Error::config(format!("{option} means nothing with the engine {self}: leave it out")))
            }
            None => Ok(()),
        }
    }
}

impl Engine {
    /// Refuses a team, unless runs execute in this process.
    ///
    /// # Errors
    /// With every other engine.
    pub(crate) fn refuse_team(&self, name: &str) -> Result<()> {
        match self {
            Self::Here => Ok(()),
            _ => Err(Error::config(format!(
                "team '{name}' runs in the process of its server, and not with the engine {self}: leave --engine out"
            ))),
        }
    }
}

impl FromStr for RestateAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = |what: String| format!("{what}: an address is {ADDRESS}");
        let url = Url::parse(text).map_err(|e| bad(e.to_string()))?;
        let http = match url.scheme() {
            "restate" => "http",
            "restates" => "https",
            other => return Err(bad(format!("'{other}' is no engine"))),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| bad("no host is named".to_owned()))?;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let ingress = format!("{http}://{host}{port}{}", url.path().trim_end_matches('/'));
        let mut address = Self { ingress, admin: format!("{http}://{host}:9070"), blobs: None, service: None };
        for (name, value) in url.query_pairs() {
            match &*name {
                "admin" => address.admin = value.into_owned(),
                "blobs" => address.blobs = Some(value.into_owned()),
                "service" => address.service = Some(value.into_owned()),
                other => return Err(bad(format!("'{other}' means nothing"))),
            }
        }
        Ok(address)
    }
}

impl RestateAddress {
    /// The store of what is too large for the server, if one is named.
    ///
    /// # Errors
    /// If it cannot be.
    pub(crate) fn blobs(&self) -> Result<Option<Arc<dyn BlobStore>>> {
        self.blobs.as_deref().map(open_blobs).transpose()
    }

    /// The name of the service, if it is not the usual one.
    pub(crate) fn service(&self) -> Option<&str> {
        self.service.as_deref()
    }

    /// The sessions of the server.
    ///
    /// # Errors
    /// An invalid address.
    pub(crate) fn journal(&self) -> Result<RestateJournal> {
        Ok(self.blobs()?.into_iter().fold(RestateJournal::new(self.open()?), RestateJournal::blobs))
    }

    /// The server, with the token of the environment.
    ///
    /// # Errors
    /// An invalid address.
    pub(crate) fn open(&self) -> Result<Restate> {
        let restate = Restate::builder(&self.ingress).admin(&self.admin);
        let restate = self.service().into_iter().fold(restate, RestateBuilder::service);
        match std::env::var("RESTATE_AUTH_TOKEN") {
            Ok(token) if !token.is_empty() => restate.token(token).build(),
            _ => restate.build(),
        }
    }
}

/// Metadata of sessions in Restate.
pub(crate) struct RestateNotes(pub(crate) Restate);

#[async_trait]
impl Notes for RestateNotes {
    async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<()> {
        self.0.note(session, notes).await
    }

    async fn notes(&self, session: &str, prefix: &str) -> Result<BTreeMap<String, Value>> {
        let mut notes = self.0.notes(session).await?;
        notes.retain(|key, _| key.starts_with(prefix));
        Ok(notes)
    }
}

/// The queue beside a store.
///
/// # Errors
/// If the store is in no database that workers can share.
pub(crate) fn queue_at(address: &StoreAddress) -> Result<PostgresQueueBuilder> {
    match address {
        StoreAddress::Postgres(url) => Ok(PostgresQueue::builder(url)),
        _ => Err(Error::config("workers share a queue in PostgreSQL: name the database, with --store postgres://..")),
    }
}

/// Connects the relay of transient events beside a store that several processes share. Returns `None`
/// for a connection through a pooler, which does not forward notifications.
///
/// # Errors
/// If the database cannot be reached.
pub(crate) async fn relay_at(address: &StoreAddress) -> Result<Option<Arc<dyn ChunkRelay>>> {
    let StoreAddress::Postgres(url) = address else { return Ok(None) };
    match PostgresRelay::connect(url).await {
        Ok(relay) => Ok(Some(Arc::new(relay))),
        Err(e) if e.kind() == ErrorKind::Config => {
            tracing::warn!(error = %e, "runs of other processes stream complete messages only");
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here => "'embedded'",
            Self::Workers => "'workers'",
            Self::Restate(_) => "of Restate",
        })
    }
}

impl fmt::Debug for RestateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ingress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restate(text: &str) -> (String, String) {
        match text.parse() {
            Ok(Engine::Restate(RestateAddress { ingress, admin, .. })) => (ingress, admin),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_engine_is_read_with_the_admin_address_beside_the_ingress() {
        assert_eq!("embedded".parse(), Ok(Engine::Here));
        assert_eq!("workers".parse(), Ok(Engine::Workers));
        assert_eq!(restate("restate://r:8080/"), ("http://r:8080".into(), "http://r:9070".into()));
        assert_eq!(restate("restates://r"), ("https://r".into(), "https://r:9070".into()));
        assert_eq!(restate("restate://[::1]:8080").1, "http://[::1]:9070");
        assert_eq!(restate("restate://r:80?admin=http://a:1").1, "http://a:1");
    }

    #[test]
    fn an_address_says_where_what_is_large_is_kept() {
        let blobs = |text: &str| text.parse::<RestateAddress>().expect("an address").blobs;
        assert_eq!(blobs("restate://r:80"), None);
        assert_eq!(blobs("restate://r:80?blobs=/mnt/all%20of%20us"), Some("/mnt/all of us".to_owned()));
        assert_eq!(blobs("restate://r?admin=http://a:1&blobs=s3://b/f"), Some("s3://b/f".to_owned()));
    }

    #[test]
    fn an_address_names_a_service() {
        let service = |text: &str| text.parse::<RestateAddress>().expect("an address").service;
        assert_eq!(service("restate://r:80"), None);
        assert_eq!(service("restate://r:80?service=Billing").as_deref(), Some("Billing"));
    }

    #[test]
    fn what_is_no_engine_is_refused_with_what_there_is() {
        for bad in ["worker", "temporal://x", "restate://", "restate://:80", "restate://r?blob=x"] {
            let error = bad.parse::<Engine>().expect_err(bad);
            assert!(error.contains("restate://HOST"), "{error}");
        }
    }
}
