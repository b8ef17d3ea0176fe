//! Versions and bindings of the protocol: how an operation is requested, and its answer in one form.

use agent_core::{Error, Result};
use reqwest::Method;
use serde_json::{Map, Value, json};
use url::Url;

use super::wire::{Card, Interface};

/// Version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V03,
    V10,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    JsonRpc,
    /// HTTP+JSON, of version 1.0.
    Http,
}

/// Operation on an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    Get,
    Cancel,
    Subscribe,
}

/// Interface of an agent that this client uses.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) endpoint: Url,
    pub(super) version: Version,
    pub(super) binding: Binding,
    tenant: Option<String>,
}

/// HTTP request of an operation.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Value>,
}

impl Target {
    /// Chooses an interface of the card: the first one of the newest version, and JSON-RPC before
    /// HTTP+JSON. All interfaces elsewhere than at `home` are left out, since headers with secrets
    /// must not be sent there.
    ///
    /// # Errors
    /// If the card has no such interface.
    pub(super) fn of_card(card: &Card, home: &Url) -> Result<Self> {
        let mut known: Vec<_> = card.supported_interfaces.iter().filter_map(Self::of_interface).collect();
        known.extend(Self::of_old(card));
        let name = crate::text::cut(&card.name, 100);
        let Some(first) = known.first() else {
            return Err(Error::tool(format!(
                "the agent '{name}' speaks neither JSON-RPC nor HTTP+JSON of version 0.3 or 1.0"
            )));
        };
        let (there, here) = (first.endpoint.origin().ascii_serialization(), home.origin().ascii_serialization());
        known.retain(|target| target.endpoint.origin() == home.origin());
        let preference = |target: &Self| (target.version == Version::V03, target.binding == Binding::Http);
        known.into_iter().min_by_key(preference).ok_or_else(|| {
            let message = format!(
                "the agent '{name}' wants to be called at {there}, and its card is at {here}: give its own URL"
            );
            Error::tool(message)
        })
    }

    fn of_interface(interface: &Interface) -> Option<Self> {
        let version = match interface.protocol_version.as_deref()?.split('.').collect::<Vec<_>>()[..] {
            ["1", ..] => Version::V10,
            ["0", "3", ..] => Version::V03,
            _ => return None,
        };
        let binding = match interface.protocol_binding.to_ascii_uppercase().as_str() {
            "JSONRPC" => Binding::JsonRpc,
            "HTTP+JSON" if version == Version::V10 => Binding::Http,
            _ => return None,
        };
        let tenant = interface.tenant.clone().filter(|tenant| !tenant.is_empty());
        Some(Self { endpoint: Url::parse(&interface.url).ok()?, version, binding, tenant })
    }

    /// The interface of a card of version 0.3.
    fn of_old(card: &Card) -> Option<Self> {
        let is_json = |transport: &str| transport.eq_ignore_ascii_case("JSONRPC");
        let preferred = card.url.as_deref().filter(|_| card.preferred_transport.as_deref().is_none_or(is_json));
        let other = || card.additional_interfaces.iter().find(|i| is_json(&i.transport)).map(|i| &*i.url);
        let endpoint = Url::parse(preferred.or_else(other)?).ok()?;
        Some(Self { endpoint, version: Version::V03, binding: Binding::JsonRpc, tenant: None })
    }

    /// Builds the request of an operation. The parameters are those of the operation in this
    /// version; `id` among them names the task.
    ///
    /// # Errors
    /// If the endpoint has no path.
    pub(super) fn request(&self, operation: Operation, mut params: Value) -> Result<Request> {
        if let Some(tenant) = &self.tenant {
            params["tenant"] = tenant.as_str().into();
        }
        match self.binding {
            Binding::JsonRpc => {
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": self.method(operation), "params": params});
                Ok(Request { method: Method::POST, url: self.endpoint.clone(), body: Some(body) })
            }
            Binding::Http => self.http(operation, params),
        }
    }

    fn method(&self, operation: Operation) -> &'static str {
        match (self.version, operation) {
            (Version::V03, Operation::Send) => "message/send",
            (Version::V03, Operation::Stream) => "message/stream",
            (Version::V03, Operation::Get) => "tasks/get",
            (Version::V03, Operation::Cancel) => "tasks/cancel",
            (Version::V03, Operation::Subscribe) => "tasks/resubscribe",
            (Version::V10, Operation::Send) => "SendMessage",
            (Version::V10, Operation::Stream) => "SendStreamingMessage",
            (Version::V10, Operation::Get) => "GetTask",
            (Version::V10, Operation::Cancel) => "CancelTask",
            (Version::V10, Operation::Subscribe) => "SubscribeToTask",
        }
    }

    fn http(&self, operation: Operation, mut params: Value) -> Result<Request> {
        let id = params.as_object_mut().and_then(|params| params.remove("id"));
        let id = id.as_ref().and_then(Value::as_str).unwrap_or_default();
        let (method, last) = match operation {
            Operation::Send => (Method::POST, "message:send".to_owned()),
            Operation::Stream => (Method::POST, "message:stream".to_owned()),
            Operation::Get => (Method::GET, id.to_owned()),
            Operation::Cancel => (Method::POST, format!("{id}:cancel")),
            Operation::Subscribe => (Method::GET, format!("{id}:subscribe")),
        };
        let mut url = self.endpoint.clone();
        {
            let mut path = url.path_segments_mut().map_err(|()| Error::tool("the agent's address has no path"))?;
            path.pop_if_empty().extend(self.tenant.iter());
            if matches!(operation, Operation::Get | Operation::Cancel | Operation::Subscribe) {
                path.push("tasks");
            }
            path.push(&last);
        }
        if method == Method::GET {
            for (name, value) in params.as_object().into_iter().flatten().filter(|(name, _)| *name != "tenant") {
                url.query_pairs_mut().append_pair(name, &value.to_string());
            }
        }
        let body = (method == Method::POST).then_some(params);
        Ok(Request { method, url, body })
    }

    /// Converts an answer to the form of version 0.3, which the rest of the client reads.
    pub(super) fn normal(&self, operation: Operation, answer: Value) -> Value {
        match (self.version, operation) {
            (Version::V03, _) => answer,
            (Version::V10, Operation::Get | Operation::Cancel) => classic(answer),
            (Version::V10, _) => event(answer),
        }
    }
}

/// Converts a response or an event of version 1.0: an object whose only field names the type.
fn event(answer: Value) -> Value {
    let Value::Object(answer) = answer else { return answer };
    let kinds = [
        ("task", "task"),
        ("message", "message"),
        ("statusUpdate", "status-update"),
        ("artifactUpdate", "artifact-update"),
    ];
    let found = answer.into_iter().find_map(|(name, value)| {
        let (_, kind) = kinds.iter().find(|(known, _)| *known == name)?;
        let mut value = classic(value);
        value["kind"] = (*kind).into();
        Some(value)
    });
    found.unwrap_or_else(|| json!({"kind": "unknown"}))
}

/// Converts an object of version 1.0.
fn classic(value: Value) -> Value {
    let object = match value {
        Value::Object(object) => object,
        Value::Array(list) => return list.into_iter().map(classic).collect(),
        other => return other,
    };
    let mut converted = Map::new();
    for (name, value) in object {
        let value = match (name.as_str(), value) {
            // Content of an application.
            ("metadata", value) => value,
            ("state", Value::String(state)) => {
                state.strip_prefix("TASK_STATE_").unwrap_or(&state).to_lowercase().replace('_', "-").into()
            }
            ("role", Value::String(role)) => role.strip_prefix("ROLE_").unwrap_or(&role).to_lowercase().into(),
            ("parts", Value::Array(parts)) => parts.into_iter().map(part).collect(),
            (_, value) => classic(value),
        };
        converted.insert(name, value);
    }
    converted.into()
}

fn part(part: Value) -> Value {
    let Value::Object(mut part) = part else { return part };
    if let Some(text) = part.remove("text") {
        return json!({"kind": "text", "text": text});
    }
    if let Some(data) = part.remove("data") {
        return json!({"kind": "data", "data": data});
    }
    let names = [("raw", "bytes"), ("url", "uri"), ("mediaType", "mimeType"), ("filename", "name")];
    let fields = names.into_iter().filter_map(|(new, old)| Some((old.to_owned(), part.remove(new)?)));
    json!({"kind": "file", "file": fields.collect::<Map<_, _>>()})
}

/// Converts a message of version 0.3 that this client made.
pub(super) fn modern(mut message: Value) -> Value {
    let parts = message["parts"].take();
    let part = |part: &Value| match part["kind"].as_str() {
        Some("text") => json!({"text": part["text"]}),
        Some("file") => {
            let file = &part["file"];
            json!({"raw": file["bytes"], "mediaType": file["mimeType"], "filename": file["name"]})
        }
        _ => part.clone(),
    };
    message["parts"] = parts.as_array().into_iter().flatten().map(part).collect();
    message["role"] = "ROLE_USER".into();
    if let Some(message) = message.as_object_mut() {
        message.remove("kind");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(card: Value) -> Card {
        serde_json::from_value(card).expect("a card")
    }

    #[test]
    fn the_newest_version_at_the_cards_own_origin_is_chosen() {
        let home = Url::parse("https://a.example/agent").expect("a URL");
        let interface = |url: &str, binding: &str, version: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
        let old = json!({"name": "a", "url": "https://a.example/rpc"});
        let target = Target::of_card(&card(old), &home).expect("one");
        assert_eq!((target.version, target.binding), (Version::V03, Binding::JsonRpc));
        let both = json!({"name": "a", "url": "https://a.example/old", "supportedInterfaces": [
            interface("https://b.example/rpc", "JSONRPC", "1.0"), interface("https://a.example/rest", "HTTP+JSON", "1.0"),
            interface("https://a.example/grpc", "GRPC", "1.0"),
        ]});
        let target = Target::of_card(&card(both), &home).expect("one");
        assert_eq!((target.binding, target.endpoint.path()), (Binding::Http, "/rest"));
        let elsewhere =
            json!({"name": "a", "supportedInterfaces": [interface("https://b.example/rpc", "JSONRPC", "1.0")]});
        let error = Target::of_card(&card(elsewhere), &home).expect_err("elsewhere");
        assert!(error.message().contains("https://b.example"), "{error}");
        let other = json!({"name": "a", "supportedInterfaces": [interface("https://a.example/rpc", "GRPC", "1.0")]});
        assert!(Target::of_card(&card(other), &home).is_err());
    }

    #[test]
    fn requests_over_http_name_the_task_in_their_path() {
        let interface = json!({"url": "https://a.example/x/", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "t"});
        let interface = serde_json::from_value(interface).expect("an interface");
        let target = Target::of_interface(&interface).expect("known");
        let get = target.request(Operation::Get, json!({"id": "a/b", "historyLength": 5})).expect("a request");
        assert_eq!((get.method, get.url.as_str()), (Method::GET, "https://a.example/x/t/tasks/a%2Fb?historyLength=5"));
        let cancel = target.request(Operation::Cancel, json!({"id": "b"})).expect("a request");
        assert_eq!(cancel.url.as_str(), "https://a.example/x/t/tasks/b:cancel");
    }

    #[test]
    fn answers_of_version_1_are_read_in_the_form_of_0_3() {
        let parts = json!([{"text": "a", "mediaType": "text/plain"}, {"data": {"state": "mine"}}, {"raw": "aA==", "mediaType": "image/png"}]);
        let told = event(json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {
            "state": "TASK_STATE_INPUT_REQUIRED", "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts},
        }}}));
        let parts = json!([{"kind": "text", "text": "a"}, {"kind": "data", "data": {"state": "mine"}},
            {"kind": "file", "file": {"bytes": "aA==", "mimeType": "image/png"}}]);
        assert_eq!(
            told,
            json!({"kind": "status-update", "taskId": "t", "contextId": "c", "status": {
                "state": "input-required", "message": {"messageId": "m", "role": "agent", "parts": parts},
            }})
        );
        assert_eq!(event(json!({"novelty": {}}))["kind"], "unknown");
    }
}
