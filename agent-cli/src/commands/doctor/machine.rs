//! What agents need of this machine: keys, a model, a store, a sandbox, a terminal.

use std::{
    env,
    io::{self, IsTerminal},
    net::ToSocketAddrs,
    time::Duration,
};

use agent::{
    config::StoreAddress,
    llm::{Provider, Providers},
    tools::sandbox::{LocalSandbox, Sandbox},
};

use super::Finding;
use crate::{
    cli::{Doctor, Global},
    output::{explained, wants_colour},
    store,
};

pub(super) async fn findings(wanted: &Doctor, global: &Global) -> Vec<Finding> {
    let mut findings = vec![Finding::well("program", format!("agent {}", env!("CARGO_PKG_VERSION")))];
    let (set, unset): (Vec<_>, Vec<_>) = Providers::builtin().iter().cloned().partition(|p| key_of(p).is_some());
    findings.extend(keys(&set, &unset));
    findings.push(model(global));
    findings.push(store_of(global).await);
    findings.push(sandbox(global.shell));
    findings.push(terminal());
    if wanted.network {
        for provider in &set {
            findings.push(reach(provider).await);
        }
    }
    findings
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The variable that holds the provider's key.
fn key_of(provider: &Provider) -> Option<&str> {
    provider.keys.iter().map(|key| key.variable.as_str()).find(|variable| is_set(variable))
}

/// The values of keys are never shown.
fn keys(set: &[Provider], unset: &[Provider]) -> Vec<Finding> {
    let mut findings: Vec<_> = set
        .iter()
        .map(|provider| {
            let key = key_of(provider).unwrap_or_default();
            let missing =
                |place: &&agent::llm::Place| place.default.is_none() && !place.variables.iter().any(|v| is_set(v));
            match provider.places.values().find(missing) {
                None => Finding::well("key", format!("{}: {key} is set", provider.name)),
                Some(place) => {
                    let found = format!("{}: {key} is set, but not where it is", provider.name);
                    Finding::ill("key", found, format!("set {}", place.variables.join(" or ")))
                }
            }
        })
        .collect();
    if findings.is_empty() {
        let others: Vec<_> = unset
            .iter()
            .filter(|p| !p.keyless)
            .take(4)
            .filter_map(|p| Some(p.keys.first()?.variable.clone()))
            .collect();
        let found =
            format!("none is set ({}, ..): the offline stand-in answers, and servers of your own", others.join(", "));
        findings.push(Finding::well("keys", found));
    }
    findings
}

fn model(global: &Global) -> Finding {
    let Some(name) = &global.model else {
        return Finding::well("model", "none is named: the offline stand-in answers");
    };
    match agent::llm::model(name.as_str()).build() {
        Ok(_) => Finding::well("model", format!("{name} can be asked")),
        Err(error) => Finding::ill("model", name.as_str(), explained(&error)),
    }
}

async fn store_of(global: &Global) -> Finding {
    match store::address(global, None) {
        Ok(address) => store_at(&address).await,
        Err(error) => Finding::ill("store", "none", explained(&error)),
    }
}

pub(super) async fn store_at(address: &StoreAddress) -> Finding {
    if let StoreAddress::Sqlite(path) = address
        && !path.exists()
    {
        return Finding::well("store", format!("{address}: not there yet; the first run makes it"));
    }
    let sessions = async { address.open().await?.sessions().await };
    match sessions.await {
        Ok(sessions) => Finding::well("store", format!("{address}: opens, {} sessions", sessions.len())),
        Err(error) => Finding::ill("store", address.to_string(), explained(&error)),
    }
}

/// What cannot be had is only ill if it is wanted.
pub(super) fn sandbox(is_wanted: bool) -> Finding {
    match LocalSandbox::builder(".").build() {
        Ok(sandbox) => Finding::well("sandbox", Sandbox::guarantees(&sandbox).to_string()),
        Err(error) => Finding {
            is_well: !is_wanted,
            ..Finding::ill(
                "sandbox",
                "programs cannot be kept in: --shell, `shell` and `command` do not work",
                explained(&error),
            )
        },
    }
}

fn terminal() -> Finding {
    let name = env::var("TERM").unwrap_or_default();
    if !io::stdout().is_terminal() {
        return Finding::well("terminal", "standard output is none: `agent chat` needs one, `agent run` does not");
    }
    let (columns, rows) = crossterm::terminal::size().unwrap_or_default();
    let colours = if wants_colour() { "colours" } else { "no colours" };
    let found = format!("{name}, {columns} by {rows}, {colours}");
    if columns < 40 || rows < 8 {
        return Finding::ill("terminal", found, "make it 40 columns by 8 rows at least for `agent chat`");
    }
    Finding::well("terminal", found)
}

/// Opens a connection to the provider's server; nothing is sent over it.
pub(super) async fn reach(provider: &Provider) -> Finding {
    let Some((host, port)) = address(provider) else {
        return Finding::well("network", format!("{}: its address is only known when it is asked", provider.name));
    };
    let what = format!("{}: {host}:{port}", provider.name);
    let connect = async {
        let (named, asked) = (what.clone(), host.clone());
        let resolved =
            tokio::task::spawn_blocking(move || (asked.as_str(), port).to_socket_addrs().map(|mut a| a.next()));
        match resolved.await {
            Ok(Ok(Some(address))) => tokio::net::TcpStream::connect(address).await.map(drop),
            Ok(Err(error)) => Err(error),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, format!("no address for {named}"))),
        }
    };
    let advice = "see that this machine reaches it, or set HTTPS_PROXY";
    match tokio::time::timeout(Duration::from_secs(5), connect).await {
        Ok(Ok(())) => Finding::well("network", format!("{what} answers")),
        Ok(Err(error)) => Finding::ill("network", format!("{what}: {error}"), advice),
        Err(_) => Finding::ill("network", format!("{what} does not answer within 5 s"), advice),
    }
}

/// Where the provider is, by the address that is set or the one of its profile.
fn address(provider: &Provider) -> Option<(String, u16)> {
    let set = provider.base_url_variable.as_ref().and_then(|variable| env::var(variable).ok());
    let profile = serde_json::to_value(provider).ok()?;
    let written = ["openai", "anthropic", "gemini", "cohere", "bedrock", "ollama"]
        .iter()
        .find_map(|wire| Some(profile[wire]["base_url"].as_str()?.to_owned()));
    let url = set.or(written)?;
    let (scheme, rest) = url.split_once("://")?;
    let place = rest.split(['/', '?']).next().filter(|place| !place.contains('{'))?;
    match place.rsplit_once(':') {
        Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
        None => Some((place.to_owned(), if scheme == "http" { 80 } else { 443 })),
    }
}
