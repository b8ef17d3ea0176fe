//! `agent doctor`.

use std::{
    env,
    io::{self, IsTerminal},
    net::ToSocketAddrs,
    time::Duration,
};

use agent::{
    Result,
    llm::{Provider, Providers},
    tools::sandbox::{LocalSandbox, Sandbox},
};
use serde_json::json;

use crate::{
    cli::{Doctor, Global},
    output::{End, explained, plain, print, print_json, wants_colour},
    store::Place,
};

/// Something that was looked at.
struct Finding {
    what: String,
    /// False if it keeps something from working.
    is_well: bool,
    found: String,
    /// What to do, if it is not well.
    advice: Option<String>,
}

impl Finding {
    fn well(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), is_well: true, found: found.into(), advice: None }
    }

    fn ill(what: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), is_well: false, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Looks at what agents need here. It ends with 1 if something does not work.
pub(crate) async fn doctor(wanted: &Doctor, global: &Global) -> Result<End> {
    let mut findings = vec![Finding::well("program", format!("agent {}", env!("CARGO_PKG_VERSION")))];
    let (set, unset): (Vec<_>, Vec<_>) = Providers::builtin().iter().cloned().partition(|p| key_of(p).is_some());
    findings.extend(keys(&set, &unset));
    findings.push(model(global));
    findings.push(store(global).await);
    findings.push(sandbox(global.shell));
    findings.push(terminal());
    if wanted.network {
        for provider in &set {
            findings.push(reach(provider).await);
        }
    }
    let is_well = findings.iter().all(|finding| finding.is_well);
    for finding in &findings {
        if global.json {
            let Finding { what, is_well, found, advice } = finding;
            print_json(&json!({"what": what, "well": is_well, "found": found, "do": advice}))?;
        } else {
            print(&plain(&shown(finding)))?;
        }
    }
    Ok(if is_well { End::Finished } else { End::Failed })
}

fn shown(finding: &Finding) -> String {
    let mark = if finding.is_well { "ok" } else { "!!" };
    let found = finding.found.trim_end().replace('\n', "\n                 ");
    let mut text = format!("{mark}  {:<12} {found}\n", finding.what);
    if let Some(advice) = &finding.advice {
        text.push_str(&format!("                 do: {advice}\n"));
    }
    text
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

async fn store(global: &Global) -> Finding {
    let place = match Place::of(global) {
        Ok(place) => place,
        Err(error) => return Finding::ill("store", "none", explained(&error)),
    };
    if let Place::File(path) = &place
        && !path.exists()
    {
        return Finding::well("store", format!("{}: not there yet; the first run makes it", place.shown()));
    }
    let sessions = async { place.open().await?.sessions().await };
    match sessions.await {
        Ok(sessions) => Finding::well("store", format!("{}: opens, {} sessions", place.shown(), sessions.len())),
        Err(error) => Finding::ill("store", place.shown(), explained(&error)),
    }
}

/// What cannot be had is only ill if it is wanted.
fn sandbox(is_wanted: bool) -> Finding {
    match LocalSandbox::builder(".").build() {
        Ok(sandbox) => Finding::well("sandbox", Sandbox::guarantees(&sandbox).to_string()),
        Err(error) => Finding {
            is_well: !is_wanted,
            ..Finding::ill("sandbox", "programs cannot be kept in: --shell does not work", explained(&error))
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
async fn reach(provider: &Provider) -> Finding {
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
