//! [`Service`]: client of the control API, which creates and removes sandboxes.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{Error, Result, tool::Secret};
use reqwest::Method;
use serde_json::json;
use url::Url;

use super::{
    server::{Asked, Failure, Server, nothing},
    wire::{Detail, Listed, Made, NewSandbox, Snapshot},
};
use crate::http::AddressPolicy;

/// Maximum of pages of a listing, and of sandboxes per page.
const MOST_PAGES: usize = 100;
const PAGE: &str = "100";

/// Client of the control API. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Service(Server);

impl Service {
    /// Creates the client. The application chose the address, so every address is allowed.
    pub(super) fn new(url: Url, key: Secret) -> Result<Self> {
        Ok(Self(Server::new("the service of sandboxes", url, AddressPolicy::anywhere(), "x-api-key", key)?))
    }

    /// Creates a sandbox. It may exist even if this fails midway: then its lease expires.
    pub(super) async fn create(&self, wanted: &NewSandbox<'_>) -> Result<Made> {
        let made = self.0.json(Asked::json("/sandboxes", wanted)).await;
        let made = made.map_err(|e| {
            let is_wrong = e.is_status(400) || e.is_status(404);
            let error = Error::from(e);
            if !is_wrong {
                return error;
            }
            let what = format!("the template '{}' makes no sandbox: {}", wanted.template, error.message());
            Error::config(what).with_source(error)
        })?;
        checked(made)
    }

    /// Resumes a sandbox if it is paused, and sets a lease of at least this duration.
    pub(super) async fn connect(&self, id: &str, lease: Duration) -> Result<Made> {
        let asked = Asked::json(path(id, "/connect"), &json!({"timeout": lease.as_secs()})).repeatable();
        checked(self.0.json(asked).await?)
    }

    pub(super) async fn detail(&self, id: &str) -> Result<Detail> {
        Ok(self.0.json(Asked::new(Method::GET, path(id, ""))).await?)
    }

    /// Renews the lease of a sandbox. Returns false if no such sandbox runs.
    pub(super) async fn renew(&self, id: &str, lease: Duration) -> Result<bool> {
        let asked = Asked::json(path(id, "/timeout"), &json!({"timeout": lease.as_secs()})).repeatable();
        there(self.0.ask(asked).await.map(drop))
    }

    /// Pauses a sandbox, which may be paused already.
    pub(super) async fn pause(&self, id: &str) -> Result<()> {
        match self.0.ask(Asked::json(path(id, "/pause"), &nothing()).repeatable()).await {
            Err(e) if !e.is_status(409) => Err(e.into()),
            _ => Ok(()),
        }
    }

    pub(super) async fn snapshot(&self, id: &str) -> Result<String> {
        let made: Snapshot = self.0.json(Asked::json(path(id, "/snapshots"), &nothing())).await?;
        if made.id.is_empty() { Err(Error::tool("the service of sandboxes has made no snapshot")) } else { Ok(made.id) }
    }

    /// Removes a sandbox. Returns false if it does not exist.
    pub(super) async fn remove(&self, id: &str) -> Result<bool> {
        there(self.0.ask(Asked::new(Method::DELETE, path(id, ""))).await.map(drop))
    }

    /// Lists the running and paused sandboxes of the account with this metadata entry.
    pub(super) async fn list(&self, name: &str, value: &str) -> Result<Vec<Listed>> {
        let wanted = url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish();
        let (mut all, mut next) = (Vec::new(), None::<String>);
        for _ in 0..MOST_PAGES {
            let mut asked = Asked::new(Method::GET, "/v2/sandboxes").query("metadata", wanted.as_str());
            asked = asked.query("state", "running,paused").query("limit", PAGE);
            if let Some(next) = next {
                asked = asked.query("nextToken", next);
            }
            let answered = self.0.ask(asked).await?;
            let page: Vec<Listed> = self.0.parsed(&answered.body)?;
            // A server without filter support returns all.
            all.extend(page.into_iter().filter(|one| one.metadata.get(name).is_some_and(|is| is == value)));
            next = answered.next;
            if next.is_none() {
                return Ok(all);
            }
        }
        Err(Error::tool("the service of sandboxes lists sandboxes without end"))
    }
}

fn there(answer: Result<(), Failure>) -> Result<bool> {
    match answer {
        Ok(()) => Ok(true),
        Err(e) if e.is_status(404) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Validates the id, which becomes a part of URLs and must not lead elsewhere.
fn checked(made: Made) -> Result<Made> {
    check_id(&made.id)?;
    Ok(made)
}

pub(super) fn check_id(id: &str) -> Result<()> {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let wrong = || Error::config("the identifier of a sandbox is letters, digits and '-', at most 64");
    if is_plain && (1..=64).contains(&id.len()) { Ok(()) } else { Err(wrong()) }
}

fn path(id: &str, what: &str) -> String {
    format!("/sandboxes/{id}{what}")
}

/// Returns the metadata of a sandbox for listings.
pub(super) fn tags(own: &BTreeMap<String, String>, ours: &[(&str, String)]) -> BTreeMap<String, String> {
    let ours = ours.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    own.clone().into_iter().chain(ours).collect()
}
