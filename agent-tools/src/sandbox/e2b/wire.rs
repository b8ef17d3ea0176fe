//! What is said to the service and to the daemon in a sandbox, and what they answer. Fields that nobody needs are not named.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::sandbox::{Entry, EntryKind, Exit};

/// A sandbox that is wanted.
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

/// A sandbox that was made, or goes on.
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

/// What a sandbox is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detail {
    #[serde(rename = "memoryMB", default)]
    pub(super) memory: u64,
    #[serde(default)]
    pub(super) allow_internet_access: Option<bool>,
}

/// One of the sandboxes of an account.
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

/// What a server says when it refuses: its own code, or that of Connect, and a text.
#[derive(Default, Deserialize)]
pub(super) struct Refused {
    #[serde(default)]
    pub(super) code: Value,
    #[serde(default)]
    pub(super) message: String,
}

/// The end of a stream.
#[derive(Deserialize)]
pub(super) struct Trailer {
    #[serde(default)]
    pub(super) error: Option<Refused>,
}

/// A message of a process's stream.
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
    /// Zero is not written.
    #[serde(default)]
    exit_code: i32,
    #[serde(default)]
    exited: bool,
    #[serde(default)]
    status: String,
}

/// What happened to a process.
pub(super) enum Event {
    Started(u32),
    Output(Bytes),
    Ended(Exit),
    /// It lives; or what happened is none of those that are asked for.
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

/// A file, a folder or a link. Numbers of 64 bits are written as texts; what is zero is not written.
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
        // Of a link, the rest is told of what it leads to.
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
