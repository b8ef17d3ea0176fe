//! Wire types of the control API and of the daemon in a sandbox. Unused fields are omitted.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::sandbox::{Entry, EntryKind, Exit};

/// Request to create a sandbox.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSandbox<'a> {
    #[serde(rename = "templateID")]
    pub(super) template: &'a str,
    pub(super) timeout: u64,
    pub(super) auto_pause: bool,
    pub(super) secure: bool,
    #[serde(rename = "allow_internet_access")]
    pub(super) network: bool,
    pub(super) metadata: &'a BTreeMap<String, String>,
    pub(super) env_vars: &'a BTreeMap<String, String>,
}

/// Created or resumed sandbox.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Made {
    #[serde(rename = "sandboxID")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) envd_access_token: Option<String>,
    #[serde(default)]
    pub(super) domain: Option<String>,
}

/// Details of a sandbox.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detail {
    #[serde(rename = "memoryMB", default)]
    pub(super) memory: u64,
    #[serde(default)]
    pub(super) allow_internet_access: Option<bool>,
}

/// Sandbox in a listing of an account.
#[derive(Deserialize)]
pub(super) struct Listed {
    #[serde(rename = "sandboxID")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub(super) struct Snapshot {
    #[serde(rename = "snapshotID")]
    pub(super) id: String,
}

/// Error response: the server's code, or that of Connect, and a message.
#[derive(Default, Deserialize)]
pub(super) struct Refused {
    #[serde(default)]
    pub(super) code: Value,
    #[serde(default)]
    pub(super) message: String,
}

/// End of a stream.
#[derive(Deserialize)]
pub(super) struct Trailer {
    #[serde(default)]
    pub(super) error: Option<Refused>,
}

/// Message of a process's stream.
#[derive(Deserialize)]
pub(super) struct Told {
    #[serde(default)]
    event: Happened,
}

#[derive(Default, Deserialize)]
struct Happened {
    start: Option<Started>,
    data: Option<Data>,
    end: Option<End>,
}

#[derive(Deserialize)]
struct Started {
    pid: u32,
}

#[derive(Deserialize)]
struct Data {
    #[serde(default, deserialize_with = "base64")]
    stdout: Option<Bytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct End {
    /// Omitted if zero.
    #[serde(default)]
    exit_code: i32,
    #[serde(default)]
    exited: bool,
    #[serde(default)]
    status: String,
}

/// Event of a process.
pub(super) enum Event {
    Started(u32),
    Output(Bytes),
    Ended(Exit),
    /// Keep-alive, or an unknown event.
    Alive,
}

impl From<Told> for Event {
    fn from(told: Told) -> Self {
        match told.event {
            Happened { start: Some(start), .. } => Self::Started(start.pid),
            Happened { data: Some(Data { stdout: Some(output) }), .. } => Self::Output(output),
            Happened { end: Some(end), .. } => Self::Ended(end.exit()),
            _ => Self::Alive,
        }
    }
}

impl End {
    fn exit(&self) -> Exit {
        match &*self.status {
            _ if self.exited => Exit::code(self.exit_code),
            "signal: killed" => Exit::signal(9),
            "signal: terminated" => Exit::signal(15),
            _ => Exit { code: None, signal: None },
        }
    }
}

/// File, folder or link. 64-bit numbers are encoded as strings; zero is omitted.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Info {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    size: Value,
    #[serde(default)]
    mode: u32,
    #[serde(default)]
    symlink_target: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Found {
    pub(super) entry: Info,
}

#[derive(Deserialize)]
pub(super) struct Listing {
    #[serde(default)]
    pub(super) entries: Vec<Info>,
}

impl From<Info> for Entry {
    fn from(info: Info) -> Self {
        // For a link, the other fields describe its target.
        let kind = match &*info.kind {
            _ if info.symlink_target.is_some() => EntryKind::Link,
            "FILE_TYPE_FILE" => EntryKind::File,
            "FILE_TYPE_DIRECTORY" => EntryKind::Folder,
            "FILE_TYPE_SYMLINK" => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let size = match &info.size {
            Value::String(text) => text.parse().ok(),
            Value::Null => Some(0),
            other => other.as_u64(),
        };
        Self { size, ..Self::new(info.name, kind) }.read_only(info.mode & 0o222 == 0)
    }
}

fn base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| STANDARD.decode(text).map(Bytes::from).map_err(D::Error::custom)).transpose()
}
