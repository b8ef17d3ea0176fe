//! Selection of the server for an operation.

use agent_core::{Error, Result};
use serde_json::Value;
use url::Url;

use super::{
    document::{fields, list, text},
    operation::Site,
};

/// Returns the server: the configured one, or the first of the most specific list in the document.
pub(super) fn server(site: &Site<'_>) -> Result<Url> {
    if let Some(chosen) = site.server {
        return Ok(chosen.clone());
    }
    let named = [site.operation, site.item, site.document.root()].into_iter().find_map(|at| list(at, "servers").next());
    let missing = "the document names no server: give one with .server(\"https://api.example.org\")";
    let named = named.ok_or_else(|| Error::config(missing))?;
    let address = address(named);
    let unusable =
        || Error::config(format!("the document's server '{address}' is not an address: give one with .server(..)"));
    let url = Url::parse(&address).map_err(|e| unusable().with_source(e))?;
    let usable = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    match usable {
        false => Err(unusable()),
        true if site.auth.has_secrets() && !is_of_the_document(site, &url) => Err(Error::config(format!(
            "'{address}' is not the document's own server, so no secret is sent there: if it may be, give it with .server(..)"
        ))),
        true if url.scheme() == "http" && site.auth.has_secrets() => Err(Error::config(format!(
            "'{address}' is not encrypted, so no secret is sent there: if it may be, give it with .server(..)"
        ))),
        true => Ok(url),
    }
}

/// Returns the addresses of all servers in a document.
#[cfg(feature = "plugins")]
pub(crate) fn servers(document: &str) -> Vec<String> {
    let Ok(document) = super::document::Document::read(document) else { return Vec::new() };
    let items = fields(document.root(), "paths").map(|(_, item)| document.resolve(item).unwrap_or(item));
    let operations = items.flat_map(|item| item.as_object().into_iter().flat_map(|item| item.values()).chain([item]));
    let named = operations.chain([document.root()]).flat_map(|at| list(at, "servers")).map(address);
    named.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// Returns true if this server is the first of the document's top level: a server that only an
/// operation names may be anybody's.
fn is_of_the_document(site: &Site<'_>, url: &Url) -> bool {
    let first = list(site.document.root(), "servers").next().map(address);
    first.and_then(|address| Url::parse(&address).ok()).is_some_and(|first| first.origin() == url.origin())
}

/// Returns the address of a server, with the default values of its variables.
fn address(server: &Value) -> String {
    let variables = fields(server, "variables");
    variables.into_iter().fold(text(server, "url").to_owned(), |address, (name, variable)| {
        address.replace(&format!("{{{name}}}"), text(variable, "default"))
    })
}
