//! Which server is asked.

use agent_core::{Error, Result};
use url::Url;

use super::{
    document::{fields, list, text},
    operation::Site,
};

/// The server: the one that was chosen, or the first that is named closest to the operation.
pub(super) fn server(site: &Site<'_>) -> Result<Url> {
    if let Some(chosen) = site.server {
        return Ok(chosen.clone());
    }
    let named = [site.operation, site.item, site.document.root()].into_iter().find_map(|at| list(at, "servers").next());
    let missing = "the document names no server: give one with .server(\"https://api.example.org\")";
    let named = named.ok_or_else(|| Error::config(missing))?;
    let mut address = text(named, "url").to_owned();
    for (name, variable) in fields(named, "variables") {
        address = address.replace(&format!("{{{name}}}"), text(variable, "default"));
    }
    let unusable =
        || Error::config(format!("the document's server '{address}' is not an address: give one with .server(..)"));
    let url = Url::parse(&address).map_err(|e| unusable().with_source(e))?;
    let usable = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    match usable {
        false => Err(unusable()),
        true if url.scheme() == "http" && site.auth.has_secrets() => Err(Error::config(format!(
            "'{address}' is not encrypted, so no secret is sent there: if it may be, give it with .server(..)"
        ))),
        true => Ok(url),
    }
}
