//! Journal entries as clients see them: with their names of sessions and users, and without the
//! server's own notes.
//!
//! Only the fields that hold such names are changed, and everything else is copied byte by byte:
//! the content of messages, tool results and state may contain anything.

use std::collections::BTreeMap;

use agent::{
    Error, ErrorKind, Result, SessionId,
    journal::{Entry, METADATA},
};
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::app::NOTES;

/// JSON object whose values stay encoded.
type Object = BTreeMap<String, Box<RawValue>>;

/// Names of one session and its users.
pub(super) struct Names {
    stored: String,
    shown: String,
    /// Prefix of the stored names of users, which have the form of a session's: tenant, then
    /// subject.
    users: String,
}

impl Names {
    pub(super) fn new(id: &SessionId) -> Self {
        Self {
            stored: id.to_string(),
            shown: id.session().to_owned(),
            users: SessionId::new(id.user(), "").to_string(),
        }
    }

    /// Encodes an entry for clients.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the entry cannot be encoded.
    pub(super) fn entry(&self, entry: &Entry) -> Result<Box<RawValue>> {
        let text = serde_json::to_string(entry).map_err(|e| failed(&e))?;
        self.entry_text(&text).map_err(|e| failed(&e))
    }

    /// Converts a line of an export for clients.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if it is not such a line.
    pub(super) fn line(&self, line: &str) -> Result<String> {
        let converted = || -> serde_json::Result<String> {
            let mut line: Object = serde_json::from_str(line)?;
            line.insert("session".into(), to_raw_value(&self.shown)?);
            change(&mut line, "entry", |entry| match entry.get().starts_with('"') {
                // Encoded as a string, because it contains line breaks.
                true => to_raw_value(self.entry_text(&serde_json::from_str::<String>(entry.get())?)?.get()),
                false => self.entry_text(entry.get()),
            })?;
            serde_json::to_string(&line)
        };
        converted().map_err(|e| failed(&e))
    }

    fn entry_text(&self, text: &str) -> serde_json::Result<Box<RawValue>> {
        let mut entry: Object = serde_json::from_str(text)?;
        change(&mut entry, "body", |body| self.body(body))?;
        to_raw_value(&entry)
    }

    fn body(&self, raw: &RawValue) -> serde_json::Result<Box<RawValue>> {
        // A body of an unknown kind may have any form.
        let Ok(mut body) = serde_json::from_str::<Object>(raw.get()) else { return Ok(raw.to_owned()) };
        for kind in ["run_started", "run_resumed"] {
            change(&mut body, kind, |raw| within(raw, |run| change(run, "ids", |ids| self.ids(ids))))?;
        }
        change(&mut body, "state_changed", |raw| within(raw, |changed| change(changed, "globals", visible)))?;
        change(&mut body, "imported", |raw| within(raw, |imported| change(imported, "state", |raw| self.state(raw))))?;
        change(&mut body, "anchored", |raw| within(raw, |body| change(body, "anchor", |raw| self.anchor(raw))))?;
        to_raw_value(&body)
    }

    fn anchor(&self, raw: &RawValue) -> serde_json::Result<Box<RawValue>> {
        within(raw, |anchor| {
            change(anchor, "globals", visible)?;
            change(anchor, "agents", |raw| {
                let of_agent = |raw: &RawValue| {
                    let run = |run: &RawValue| within(run, |run| change(run, "user", |user| self.user(user)));
                    within(raw, |agent| change(agent, "runs", |runs| each(runs, run)))
                };
                within(raw, |agents| agents.values_mut().try_for_each(|agent| of_agent(agent).map(|new| *agent = new)))
            })?;
            change(anchor, "open", |raw| {
                each(raw, |run| within(run, |run| change(run, "state", |state| self.state(state))))
            })
        })
    }

    /// Converts the state of a run, with those of the sub-agents that it waits for.
    fn state(&self, raw: &RawValue) -> serde_json::Result<Box<RawValue>> {
        let of_child = |raw: &RawValue| within(raw, |child| change(child, "checkpoint", |state| self.state(state)));
        within(raw, |state| {
            change(state, "ids", |ids| self.ids(ids))?;
            change(state, "globals", visible)?;
            change(state, "children", |raw| each(raw, of_child))?;
            change(state, "background", |raw| each(raw, of_child))
        })
    }

    fn ids(&self, raw: &RawValue) -> serde_json::Result<Box<RawValue>> {
        within(raw, |ids| {
            change(ids, "session", |raw| {
                let name: String = serde_json::from_str(raw.get())?;
                to_raw_value(if name == self.stored { &self.shown } else { &name })
            })?;
            change(ids, "user", |user| self.user(user))
        })
    }

    fn user(&self, raw: &RawValue) -> serde_json::Result<Box<RawValue>> {
        let name: Option<String> = serde_json::from_str(raw.get())?;
        to_raw_value(&name.as_deref().map(|name| name.strip_prefix(&self.users).unwrap_or(name)))
    }
}

/// Removes the server's notes from the storage that a session's agents share.
fn visible(raw: &RawValue) -> serde_json::Result<Box<RawValue>> {
    match raw.get() {
        "null" => Ok(raw.to_owned()),
        _ => within(raw, |globals| {
            globals.retain(|key, _| !key.starts_with(NOTES));
            Ok(())
        }),
    }
}

/// Changes an object.
fn within(
    raw: &RawValue,
    change: impl FnOnce(&mut Object) -> serde_json::Result<()>,
) -> serde_json::Result<Box<RawValue>> {
    if raw.get() == "null" {
        return Ok(raw.to_owned());
    }
    let mut object: Object = serde_json::from_str(raw.get())?;
    change(&mut object)?;
    to_raw_value(&object)
}

/// Changes each item of a list.
fn each(
    raw: &RawValue,
    change: impl Fn(&RawValue) -> serde_json::Result<Box<RawValue>>,
) -> serde_json::Result<Box<RawValue>> {
    let items: Vec<Box<RawValue>> = serde_json::from_str(raw.get())?;
    to_raw_value(&items.iter().map(|item| change(item)).collect::<serde_json::Result<Vec<_>>>()?)
}

/// Changes a field of an object, if the object has it.
fn change(
    object: &mut Object,
    field: &str,
    change: impl FnOnce(&RawValue) -> serde_json::Result<Box<RawValue>>,
) -> serde_json::Result<()> {
    if let Some(value) = object.get_mut(field) {
        *value = change(value)?;
    }
    Ok(())
}

fn failed(error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Store, format!("an entry cannot be encoded for clients: {error}"))
}

/// Builds a page of entries: `{"entries": [..], "after": ..}`.
pub(super) fn page(entries: &[Box<RawValue>], after: Option<u64>) -> Result<String> {
    #[derive(Serialize)]
    struct Page<'a> {
        entries: &'a [Box<RawValue>],
        after: Option<u64>,
    }
    serde_json::to_string(&Page { entries, after }).map_err(|e| failed(&e))
}

/// Removes the server's notes from a decoded storage.
pub(super) fn without_notes(globals: BTreeMap<String, Value>) -> serde_json::Map<String, Value> {
    globals.into_iter().filter(|(key, _)| !key.starts_with(NOTES) && key != METADATA).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(body: &Value) -> Value {
        let entry = json!({"seq": 1, "run": "r", "time": 0, "version": 1, "body": body});
        let names = Names::new(&SessionId::new("teapots", "garden"));
        let shown = names.entry_text(&entry.to_string()).expect("an entry");
        serde_json::from_str::<Value>(shown.get()).expect("JSON")["body"].clone()
    }

    #[test]
    fn names_are_changed_where_they_are_names_and_nowhere_else() {
        let ids = json!({"run_id": "r", "session": "teapots/garden", "user": "teapots/ada"});
        let public = json!({"run_id": "r", "session": "garden", "user": "ada"});
        assert_eq!(shown(&json!({"run_started": {"ids": ids}})), json!({"run_started": {"ids": public}}));
        let said = json!({"tool_finished": {"output": {"ids": ids, "session": "teapots/garden"}}});
        assert_eq!(shown(&said), said, "a tool's result is the tool's");
        let state = |ids: &Value| json!({"ids": ids, "state": {"ids": {"session": "teapots/garden"}}, "children": [{"checkpoint": {"ids": ids}}, {"checkpoint": null}]});
        assert_eq!(shown(&json!({"imported": {"state": state(&ids)}})), json!({"imported": {"state": state(&public)}}));
    }

    #[test]
    fn the_notes_of_the_server_are_not_shown() {
        let globals = json!({"agent-server/asked/r": {"caps": 1}, "agent-server-of-mine": 2, "mine": null});
        let public = json!({"agent-server-of-mine": 2, "mine": null});
        let changed = |globals: &Value| json!({"state_changed": {"globals": globals}});
        assert_eq!(shown(&changed(&globals)), changed(&public));
        let anchored = |globals: &Value| json!({"anchored": {"anchor": {"globals": globals, "open": [{"state": {"globals": globals}}]}}});
        assert_eq!(shown(&anchored(&globals)), anchored(&public));
        let runs = |user: &str| json!({"anchored": {"anchor": {"agents": {"a": {"runs": [{"user": user}, {}]}}}}});
        assert_eq!(shown(&runs("teapots/ada")), runs("ada"));
    }

    #[test]
    fn bytes_that_hold_no_name_are_kept() {
        let text = r#"{"seq":1,"run":"r","time":0,"version":1,"body":{"later": {"n": 1.50,  "big": 12345678901234567890123}}}"#;
        let names = Names::new(&SessionId::new("teapots", "garden"));
        let shown = names.entry_text(text).expect("an entry");
        assert!(shown.get().contains(r#"{"n": 1.50,  "big": 12345678901234567890123}"#), "{}", shown.get());
    }
}
