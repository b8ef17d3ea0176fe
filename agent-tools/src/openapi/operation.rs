//! Operation of an API: its tool specification, and the data to perform its requests.

use std::collections::BTreeMap;

use agent_core::{Effect, Error, Result};
use reqwest::{Method, header::HeaderName};
use serde_json::{Map, Value, json};
use url::Url;

use super::{
    auth::{Auth, Credential},
    body::{Body, body},
    description::description,
    document::{Document, fields, is_set, list, text},
    place::{Place, Style},
    schema::{Schemas, checked},
    server::server,
};

/// Headers that HTTP or the framework controls, whatever a document declares.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];
/// Header that makes a repeated request idempotent.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Maximum length of an argument name that is not shortened; providers accept 64.
const LONGEST_ARGUMENT: usize = 48;

/// Operation of an API.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: Value,
    pub(super) effect: Effect,
    pub(super) method: Method,
    /// Path below the base URL, with names in braces.
    pub(super) path: String,
    pub(super) base: Url,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) credentials: Vec<Credential>,
    /// Header for the call's idempotency key.
    pub(super) idempotency: Option<HeaderName>,
}

/// Parameter with its argument name.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) argument: String,
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) style: Style,
}

/// Location of an operation in its document.
pub(super) struct Site<'a> {
    pub(super) document: &'a Document,
    pub(super) auth: &'a Auth,
    /// Server that the application configured.
    pub(super) server: Option<&'a Url>,
    pub(super) path: &'a str,
    pub(super) item: &'a Value,
    pub(super) method: &'a Method,
    pub(super) operation: &'a Value,
}

/// Arguments of an operation during construction.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) properties: Map<String, Value>,
    required: Vec<String>,
}

impl Arguments {
    pub(super) fn add(&mut self, name: &str, schema: Value, required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if required {
            self.required.push(name.to_owned());
        }
    }

    /// Adds an argument for the parameter `name`: under the same name if providers accept it and it
    /// is unused.
    pub(super) fn name(&mut self, name: &str, place: &str, schema: Value, required: bool) -> String {
        let known = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
        let plain: String = name.chars().map(known).take(LONGEST_ARGUMENT).collect();
        let plain = if plain == name { plain } else { plain.trim_matches('_').to_owned() };
        let plain = if plain.is_empty() { place.to_owned() } else { plain };
        let others = [format!("{plain}_{place}")].into_iter().chain((2..).map(|number| format!("{plain}_{number}")));
        let free = std::iter::once(plain.clone()).chain(others).find(|name| !self.properties.contains_key(name));
        let free = free.expect("there is always another number");
        self.add(&free, schema, required);
        free
    }

    fn schema(self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        schema
    }
}

impl Operation {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) with the reason why the operation
    /// cannot become a tool.
    pub(super) fn read(site: &Site<'_>, name: String) -> Result<Self> {
        let root = site.document.root();
        let requirements = site.operation.get("security").or_else(|| root.get("security"));
        let credentials = site.auth.of(requirements).map_err(Error::config)?;
        let (mut schemas, mut arguments) = (Schemas::new(site.document), Arguments::default());
        let (mut parameters, mut idempotency) = (Vec::new(), None);
        for ((place, named), parameter) in declared(site)? {
            let lower = named.to_ascii_lowercase();
            let own = place == Place::Header && OWN_HEADERS.contains(&lower.as_str());
            if own || credentials.iter().any(|credential| credential.fills(place, &named)) {
                continue;
            }
            if place == Place::Header && lower == IDEMPOTENCY_KEY {
                idempotency = Some(HeaderName::from_static(IDEMPOTENCY_KEY));
                continue;
            }
            let (style, schema) = form_of(parameter, place, &named, &mut schemas)?;
            let needed = place == Place::Path || is_set(parameter, "required");
            let argument = arguments.name(&named, place.name(), schema, needed);
            parameters.push(Parameter { argument, name: named, place, style });
        }
        let body = body(site, &mut schemas, &mut arguments)?;
        let schema = checked(&name, arguments.schema())?;
        let effect = match (site.method.as_str(), &idempotency) {
            ("GET" | "HEAD" | "OPTIONS", _) => Effect::Pure,
            ("PUT" | "DELETE", _) | (_, Some(_)) => Effect::Idempotent,
            _ => Effect::AtMostOnce,
        };
        let description = description(site, &parameters);
        let (method, path, base) = (site.method.clone(), site.path.to_owned(), server(site)?);
        Ok(Self { name, description, schema, effect, method, path, base, parameters, body, credentials, idempotency })
    }
}

/// Returns the parameters by location and name; those of the operation override those of its path.
fn declared<'a>(site: &Site<'a>) -> Result<BTreeMap<(Place, String), &'a Value>> {
    let mut all = BTreeMap::new();
    for parameter in list(site.item, "parameters").chain(list(site.operation, "parameters")) {
        let parameter = site.document.resolve(parameter)?;
        let (name, place) = (text(parameter, "name"), text(parameter, "in"));
        let known =
            Place::named(place).ok_or_else(|| Error::config(format!("its parameter '{name}' is in '{place}'")))?;
        if known == Place::Header && HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(Error::config(format!("its parameter '{name}' is no header")));
        }
        all.insert((known, name.to_owned()), parameter);
    }
    Ok(all)
}

/// Returns the serialisation style of a parameter, and its schema with the description.
fn form_of(parameter: &Value, place: Place, name: &str, schemas: &mut Schemas<'_>) -> Result<(Style, Value)> {
    let (style, schema) = match fields(parameter, "content").next() {
        Some((_, content)) => (Style::Json, content.get("schema")),
        None => {
            let style = parameter.get("style").and_then(Value::as_str);
            let explode = parameter.get("explode").and_then(Value::as_bool);
            let known = Style::of(place, style, explode);
            let unknown = || {
                Error::config(format!(
                    "the style '{}' of its parameter '{name}' is not known",
                    style.unwrap_or_default()
                ))
            };
            (known.ok_or_else(unknown)?, parameter.get("schema"))
        }
    };
    let mut written = schema.map_or_else(|| Ok(json!({"type": "string"})), |schema| schemas.write(schema))?;
    let said = text(parameter, "description").trim();
    if let Some(object) = written.as_object_mut().filter(|_| !said.is_empty()) {
        object.insert("description".to_owned(), said.into());
    }
    Ok((style, written))
}
