//! Versions of the protocol, and their differences in form.

use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::rpc::RpcError;

/// Header, and query parameter, that names the version of a request.
const NAME: &str = "a2a-version";

pub(crate) use crate::webhooks::Version;

impl Version {
    /// Returns the version that a request names; `None` if it names none.
    ///
    /// # Errors
    /// If the version is not supported.
    pub(super) fn named(headers: &HeaderMap, query: Option<&str>) -> Result<Option<Self>, RpcError> {
        let parameter = |query: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(NAME)).map(|(_, value)| value.to_owned())
        };
        let header = headers.get(NAME).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let named = header.or_else(|| query.and_then(parameter)).unwrap_or_default();
        let named = named.trim();
        let mut numbers = named.split('.');
        match (numbers.next(), numbers.next()) {
            (Some(""), None) => Ok(None),
            (Some("0"), Some("3")) => Ok(Some(Self::V03)),
            (Some("1"), Some("0")) => Ok(Some(Self::V10)),
            _ => Err(RpcError::version(named)),
        }
    }

    /// Converts an object of version 0.3 into the form of this version.
    pub(super) fn shape(self, object: Value) -> Value {
        if self == Self::V03 { object } else { modern(object) }
    }

    /// As [`shape`](Self::shape), as a response or an event of a stream: an object with one field
    /// that names the type.
    pub(super) fn payload(self, object: Value) -> Value {
        if self == Self::V03 {
            return object;
        }
        let name = match object["kind"].as_str() {
            Some("message") => "message",
            Some("status-update") => "statusUpdate",
            Some("artifact-update") => "artifactUpdate",
            _ => "task",
        };
        json!({ name: modern(object) })
    }
}

/// Converts an object of version 0.3 that this server made.
fn modern(value: Value) -> Value {
    let object = match value {
        Value::Object(object) => object,
        Value::Array(list) => return list.into_iter().map(modern).collect(),
        other => return other,
    };
    let is_file = object.get("kind").is_some_and(|kind| kind == "file");
    let mut converted = Map::new();
    for (name, value) in object {
        match (name.as_str(), value) {
            ("kind" | "final", _) => {}
            // Content of an application.
            ("data" | "metadata", value) => drop(converted.insert(name, value)),
            ("state", Value::String(state)) => drop(converted.insert(name, state_name(&state).into())),
            ("role", Value::String(role)) => {
                drop(converted.insert(name, format!("ROLE_{}", role.to_uppercase()).into()));
            }
            ("file", Value::Object(file)) if is_file => converted.extend(modern_file(file)),
            (_, value) => drop(converted.insert(name, modern(value))),
        }
    }
    converted.into()
}

fn modern_file(file: Map<String, Value>) -> Map<String, Value> {
    let name = |name: String| match name.as_str() {
        "bytes" => "raw".to_owned(),
        "uri" => "url".to_owned(),
        "mimeType" => "mediaType".to_owned(),
        "name" => "filename".to_owned(),
        _ => name,
    };
    file.into_iter().map(|(field, value)| (name(field), value)).collect()
}

/// Name of a state in version 1.0.
pub(super) fn state_name(state: &str) -> String {
    format!("TASK_STATE_{}", state.replace('-', "_").to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_version_by_header_or_query() {
        let named = |header: Option<&str>, query| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert("A2A-Version", header.parse().expect("a value"));
            }
            Version::named(&headers, query)
        };
        assert_eq!(named(None, None), Ok(None));
        assert_eq!(named(Some(""), None), Ok(None));
        assert_eq!(named(Some("0.3"), None), Ok(Some(Version::V03)));
        assert_eq!(named(Some("1.0.1"), None), Ok(Some(Version::V10)));
        assert_eq!(named(None, Some("a=b&A2A-Version=1.0")), Ok(Some(Version::V10)));
        assert!(named(Some("2.0"), None).is_err() && named(Some("x"), None).is_err());
    }

    #[test]
    fn an_object_of_version_0_3_becomes_one_of_1_0() {
        let file = json!({"kind": "file", "file": {"bytes": "aA==", "mimeType": "image/png", "name": "a.png"}});
        let data = json!({"kind": "data", "data": {"kind": "mine", "state": "mine"}});
        let message = json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [file, data]});
        let task = json!({"kind": "task", "id": "t", "status": {"state": "input-required", "message": message}});
        let file = json!({"raw": "aA==", "mediaType": "image/png", "filename": "a.png"});
        let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [file, {"data": {"kind": "mine", "state": "mine"}}]});
        let wanted = json!({"task": {"id": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": message}}});
        assert_eq!(Version::V10.payload(task.clone()), wanted);
        assert_eq!(Version::V03.payload(task.clone()), task);
        let update = json!({"kind": "status-update", "taskId": "t", "status": {"state": "completed"}, "final": true});
        let wanted = json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}});
        assert_eq!(Version::V10.payload(update), wanted);
    }
}
