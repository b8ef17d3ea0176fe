//! Checks of this machine: keys, a model, a store, a sandbox, a terminal.

use std::{
    collections::BTreeSet,
    env,
    io::{self, IsTerminal},
    time::Duration,
};

use agent::{
    Error,
    config::StoreAddress,
    llm::{HttpTransport, Provider, Providers, Transport},
    tools::sandbox::{LocalSandbox, Sandbox},
};
use futures::future::join_all;

use super::Finding;
use crate::{
    cli::{Doctor, Global},
    output::{explained, wants_colour},
    store,
};

/// The longest time for which a server is waited for.
const LONGEST: Duration = Duration::from_secs(10);

pub(super) async fn findings(wanted: &Doctor, global: &Global) -> Vec<Finding> {
    let mut findings = vec![Finding::well("program", format!("agent {}", env!("CARGO_PKG_VERSION")))];
    let (set, unset): (Vec<_>, Vec<_>) = Providers::of_process().iter().cloned().partition(|p| key_of(p).is_some());
    findings.extend(keys(&set, &unset));
    findings.push(model(global));
    findings.push(store_of(global).await);
    findings.push(sandbox(global.shell));
    findings.push(terminal());
    if wanted.network {
        findings.extend(reach_all(&set).await);
    }
    findings
}

/// Checks that the servers of these providers are reached.
pub(super) async fn reach_all(providers: &[Provider]) -> Vec<Finding> {
    match HttpTransport::builder().connect_timeout(LONGEST / 2).build() {
        Ok(transport) => {
            join_all(providers.iter().map(|provider| reach(provider.name.clone(), address(provider), &transport))).await
        }
        Err(error) => vec![Finding::ill("network", "cannot be used", explained(&error))],
    }
}

/// Checks that the servers of models are reached, each by its own address or else by that of its provider.
pub(super) async fn reach_models(models: &BTreeSet<(String, Option<String>)>) -> Vec<Finding> {
    let transport = match HttpTransport::builder().connect_timeout(LONGEST / 2).build() {
        Ok(transport) => transport,
        Err(error) => return vec![Finding::ill("network", "cannot be used", explained(&error))],
    };
    let targets = models.iter().filter_map(|(name, url)| match url {
        Some(url) => Some((name.clone(), server_of(url))),
        None => {
            let provider = Providers::of_process().iter().find(|provider| provider.name == *name).cloned()?;
            Some((name.clone(), address(&provider)))
        }
    });
    join_all(targets.map(|(name, url)| reach(name, url, &transport))).await
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

/// A missing sandbox is a problem only if it is used.
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
    let (rows, columns) = console::Term::stdout().size_checked().unwrap_or_default();
    let colours = if wants_colour() { "colours" } else { "no colours" };
    let found = format!("{name}, {columns} by {rows}, {colours}");
    if columns < 40 || rows < 8 {
        return Finding::ill("terminal", found, "make it 40 columns by 8 rows at least for `agent chat`");
    }
    Finding::well("terminal", found)
}

/// Asks the provider's server for nothing, on the way that models' requests take, without a key. Whatever it says, it answers.
async fn reach(name: String, url: Option<String>, transport: &HttpTransport) -> Finding {
    let Some(url) = url else {
        return Finding::well("network", format!("{name}: its address is only known when it is called"));
    };
    let what = format!("{name}: {url}");
    let asked = async {
        let request = http::Request::head(&url).body(Default::default());
        transport.send(request.map_err(|e| Error::config("that is no address").with_source(e))?).await
    };
    match tokio::time::timeout(LONGEST, asked).await {
        Ok(Ok(_)) => Finding::well("network", format!("{what} answers")),
        Ok(Err(error)) => {
            let part = error.context("part").unwrap_or("request");
            Finding::ill("network", format!("{what}: {part}: {}", error.message()), advice(part, &url))
        }
        Err(_) => Finding::ill(
            "network",
            format!("{what} takes the request and says nothing for {LONGEST:?}"),
            advice("", &url),
        ),
    }
}

/// Returns the advice for a failed part.
fn advice(part: &str, url: &str) -> &'static str {
    let is_here = ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| url.contains(&format!("://{host}")));
    match part {
        _ if is_here => "start the server, or correct its address: 'base_url' of the model",
        "name" => "see that the name is right and that this machine can look names up, or set HTTPS_PROXY",
        "proxy" => "see HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, and that the proxy lets this address through",
        "tls" => "see that nothing on the way changes TLS; a company's root certificate is trusted by SSL_CERT_FILE",
        _ => "see that this machine reaches it, or set HTTPS_PROXY",
    }
}

/// Returns the server of the provider, from the environment or its profile, without a path.
fn address(provider: &Provider) -> Option<String> {
    let set = provider.base_url_variable.as_ref().and_then(|variable| env::var(variable).ok());
    let profile = serde_json::to_value(provider).ok()?;
    let written = ["openai", "anthropic", "gemini", "cohere", "bedrock", "ollama"]
        .iter()
        .find_map(|wire| Some(profile[wire]["base_url"].as_str()?.to_owned()));
    server_of(&set.or(written)?)
}

/// The server of a URL, without a path and a user.
fn server_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let place = rest.split(['/', '?']).next().filter(|place| !place.contains('{'))?;
    let place = place.rsplit_once('@').map_or(place, |(_user, place)| place);
    Some(format!("{scheme}://{place}/"))
}
