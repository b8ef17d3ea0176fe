//! Authentication of requests. Credentials are identified by the name of their security scheme, and
//! appear in requests only.

use std::collections::BTreeMap;

use agent_core::{Error, Result, tool::Secret};
use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::{
    document::{Document, fields, text},
    place::Place,
};
use crate::http::encoded;

/// Location of a secret in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Key { place: Place, name: String },
    Bearer,
    Basic,
}

/// Secret and its location.
#[derive(Clone, Debug)]
pub(super) struct Credential {
    pub(super) scheme: Scheme,
    secret: Secret,
}

/// Security schemes of a document, and the secrets given for them.
#[derive(Debug)]
pub(super) struct Auth {
    schemes: BTreeMap<String, Result<Scheme, String>>,
    secrets: BTreeMap<String, Secret>,
}

impl Auth {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if a secret is for a scheme that the
    /// document does not declare.
    pub(super) fn new(document: &Document, secrets: BTreeMap<String, Secret>) -> Result<Self> {
        let mut schemes = BTreeMap::new();
        for (name, scheme) in
            document.root().get("components").into_iter().flat_map(|all| fields(all, "securitySchemes"))
        {
            schemes.insert(name.clone(), Scheme::read(document.resolve(scheme)?));
        }
        for (name, secret) in &secrets {
            if !schemes.contains_key(name) {
                let known: Vec<_> = schemes.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Error::config(format!(
                    "there is no security scheme '{name}' in the document; there are: {known}"
                )));
            }
            if secret.expose().is_empty() || HeaderValue::from_str(secret.expose()).is_err() {
                return Err(Error::config(format!("the secret for '{name}' is empty, or holds what no secret holds")));
            }
        }
        Ok(Self { schemes, secrets })
    }

    /// Returns the credentials for these requirements, one of which must be met.
    ///
    /// # Errors
    /// A text that names the secrets which would meet a requirement.
    pub(super) fn of(&self, requirements: Option<&Value>) -> Result<Vec<Credential>, String> {
        let Some(ways) = requirements.and_then(Value::as_array).filter(|ways| !ways.is_empty()) else {
            return Ok(Vec::new());
        };
        let names = |way: &Value| way.as_object().into_iter().flat_map(|way| way.keys().cloned()).collect::<Vec<_>>();
        let mut ways: Vec<_> = ways.iter().map(names).collect();
        // Alternatives with credentials come before anonymous access: a secret was given to be
        // used.
        ways.sort_by_key(Vec::is_empty);
        let met = |way: &&Vec<String>| way.iter().all(|name| self.secrets.contains_key(name));
        let Some(way) = ways.iter().find(met) else {
            let ways: Vec<_> = ways.iter().map(|way| way.join(" and ")).collect();
            return Err(format!("it needs a secret for {}: give one with .secret(..)", ways.join(", or for ")));
        };
        way.iter().map(|name| self.credential(name)).collect()
    }

    fn credential(&self, name: &str) -> Result<Credential, String> {
        let scheme = self
            .schemes
            .get(name)
            .cloned()
            .unwrap_or_else(|| Err(format!("the document has no security scheme '{name}'")))?;
        Ok(Credential { scheme, secret: self.secrets[name].clone() })
    }

    /// Returns true if a secret was given.
    pub(super) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }
}

impl Scheme {
    fn read(scheme: &Value) -> Result<Self, String> {
        match (text(scheme, "type"), text(scheme, "scheme").to_ascii_lowercase().as_str()) {
            ("apiKey", _) => {
                let (name, place) = (text(scheme, "name").to_owned(), text(scheme, "in"));
                let place = Place::named(place).filter(|place| *place != Place::Path && !name.is_empty());
                let place = place.ok_or("its key has no place or no name")?;
                if place == Place::Header && HeaderName::from_bytes(name.as_bytes()).is_err() {
                    return Err(format!("'{name}' is no header"));
                }
                Ok(Self::Key { place, name })
            }
            ("http", "bearer") | ("oauth2" | "openIdConnect", _) => Ok(Self::Bearer),
            ("http", "basic") => Ok(Self::Basic),
            (kind, scheme) => Err(format!("its security scheme ({kind} {scheme}) is not known")),
        }
    }
}

impl Credential {
    /// Returns every encoding in which the secret may appear in a response.
    pub(super) fn spellings(&self) -> Vec<String> {
        let plain = self.secret.expose();
        match self.scheme {
            Scheme::Basic => {
                let password = plain.split_once(':').map_or("", |(_, password)| password);
                vec![plain.to_owned(), password.to_owned(), STANDARD.encode(plain)]
            }
            Scheme::Key { .. } | Scheme::Bearer => vec![plain.to_owned()],
        }
    }

    /// Returns true if the secret occupies the location of a parameter of this name.
    pub(super) fn fills(&self, place: Place, name: &str) -> bool {
        match &self.scheme {
            Scheme::Key { place: own, name: key } => *own == place && key.eq_ignore_ascii_case(name),
            Scheme::Bearer | Scheme::Basic => place == Place::Header && name.eq_ignore_ascii_case("authorization"),
        }
    }

    /// Adds the secret to a request.
    pub(super) fn put(
        &self,
        headers: &mut HeaderMap,
        query: &mut Vec<(String, String)>,
        cookies: &mut Vec<(String, String)>,
    ) {
        let secret = self.secret.expose();
        let mut header = |name: HeaderName, value: String| {
            let mut value = HeaderValue::from_str(&value).expect("a secret was looked at when it was given");
            value.set_sensitive(true);
            headers.insert(name, value);
        };
        match &self.scheme {
            Scheme::Bearer => header(AUTHORIZATION, format!("Bearer {secret}")),
            Scheme::Basic => header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(secret))),
            Scheme::Key { place: Place::Header, name } => {
                header(HeaderName::from_bytes(name.as_bytes()).expect("it was looked at"), secret.to_owned());
            }
            Scheme::Key { place: Place::Cookie, name } => cookies.push((name.clone(), secret.to_owned())),
            Scheme::Key { name, .. } => query.push((name.clone(), encoded(secret))),
        }
    }
}
