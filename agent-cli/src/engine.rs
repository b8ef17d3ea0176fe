//! Who runs the runs: this process, workers over PostgreSQL, or services of Restate.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc, time::Duration};

use agent::{
    Error, PostgresJournal, PostgresQueue, Result, async_trait, config::StoreAddress, core::Journal,
    store::PostgresQueueBuilder,
};
use agent_restate::Restate;
use agent_server::Notes;
use clap::Args;
use serde_json::Value;

/// Seconds for which a process that died keeps its runs from others, unless it is said.
pub(crate) const LEASE: u64 = 30;

/// Who runs the runs.
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

/// What is said of the database by all whose runs are in it.
#[derive(Debug, Default, Args)]
pub(crate) struct DatabaseOptions {
    /// The database is behind a pooler that gives each transaction another connection: nothing is prepared, and workers ask for news once a second
    #[arg(long)]
    pub(crate) pooled: bool,
}

/// Where a Restate server is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RestateAddress {
    ingress: String,
    admin: String,
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return match text {
                "here" => Ok(Self::Here),
                "workers" => Ok(Self::Workers),
                _ => Err("an engine is 'here', 'workers' or restate://HOST:PORT".to_owned()),
            };
        };
        let http = match scheme {
            "restate" => "http",
            "restates" => "https",
            _ => {
                return Err(format!(
                    "'{scheme}' is no engine; there are restate://HOST:PORT and, by TLS, restates://HOST:PORT"
                ));
            }
        };
        let (place, admin) = rest.split_once("?admin=").unwrap_or((rest, ""));
        let place = place.trim_end_matches('/');
        let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
        if host.is_empty() {
            return Err("the address has no host: restate://HOST:PORT".to_owned());
        }
        let admin = if admin.is_empty() { format!("{http}://{host}:9070") } else { admin.to_owned() };
        Ok(Self::Restate(RestateAddress { ingress: format!("{http}://{place}"), admin }))
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

impl RestateAddress {
    /// The server, with the token of the environment.
    ///
    /// # Errors
    /// If an address is none.
    pub(crate) fn open(&self) -> Result<Restate> {
        let restate = Restate::builder(&self.ingress).admin(&self.admin);
        match std::env::var("RESTATE_AUTH_TOKEN") {
            Ok(token) if !token.is_empty() => restate.token(token).build(),
            _ => restate.build(),
        }
    }
}

/// What a server notes of sessions that Restate keeps.
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

impl DatabaseOptions {
    /// The queue beside a store, for a process that stays.
    ///
    /// # Errors
    /// If the store is in no database that workers can share.
    pub(crate) fn queue_at(&self, address: &StoreAddress) -> Result<PostgresQueueBuilder> {
        Ok(queue_at(address)?.listen(!self.pooled))
    }

    /// The journal of a store, of which a process that died keeps sessions from others for so long.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn open(&self, address: &StoreAddress, lease: Duration) -> Result<Arc<dyn Journal>> {
        match address {
            StoreAddress::Postgres(url) if self.pooled => {
                let journal = PostgresJournal::builder(url).lease_ttl(lease).prepared_statements(false);
                Ok(Arc::new(journal.connect().await?))
            }
            _ => address.open_leased(lease).await,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here => "'here'",
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
            Ok(Engine::Restate(RestateAddress { ingress, admin })) => (ingress, admin),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_engine_is_read_with_the_admin_address_beside_the_ingress() {
        assert_eq!("here".parse(), Ok(Engine::Here));
        assert_eq!("workers".parse(), Ok(Engine::Workers));
        assert_eq!(restate("restate://r:8080/"), ("http://r:8080".into(), "http://r:9070".into()));
        assert_eq!(restate("restates://r"), ("https://r".into(), "https://r:9070".into()));
        assert_eq!(restate("restate://[::1]:8080").1, "http://[::1]:9070");
        assert_eq!(restate("restate://r:80?admin=http://a:1").1, "http://a:1");
    }

    #[test]
    fn what_is_no_engine_is_refused_with_what_there_is() {
        for bad in ["worker", "temporal://x", "restate://", "restate://:80"] {
            let error = bad.parse::<Engine>().expect_err(bad);
            assert!(error.contains("restate://HOST"), "{error}");
        }
    }
}
