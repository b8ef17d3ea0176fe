//! Structured output, without an agent.

mod asking;
mod partial;
mod repair;
mod types;

use std::sync::{Arc, Mutex};

use agent_core::{
    Chunk, ChunkSink, History, Message, ModelInfo, ModelRequest,
    testing::{ScriptedModel, Turn, detached_run},
};
use agent_tools::Structured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A city.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct City {
    /// Its name.
    pub(crate) name: String,
    pub(crate) people: u32,
}

pub(crate) fn bern() -> City {
    City { name: "Bern".into(), people: 134_000 }
}

pub(crate) const BERN: &str = r#"{"name":"Bern","people":134000}"#;

pub(crate) fn cities() -> Structured<City> {
    Structured::new().expect("a valid schema")
}

pub(crate) fn ask() -> ModelRequest {
    let history = History::from_messages([Message::user("Which city?")]).expect("paired");
    ModelRequest::new(detached_run(history).cx().clone())
}

/// Like [`ask`], with the streamed chunks.
pub(crate) fn ask_and_listen() -> (ModelRequest, Arc<Mutex<Vec<Chunk>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (mut req, sink) = (ask(), heard.clone());
    req.stream = true;
    req.sink = ChunkSink::default().with_observer(move |chunk| sink.lock().expect("free").push(chunk.clone()));
    (req, heard)
}

pub(crate) fn model(turns: impl IntoIterator<Item = Turn>, info: ModelInfo) -> ScriptedModel {
    ScriptedModel::new(turns).with_info(info)
}

pub(crate) fn info() -> ModelInfo {
    ModelInfo::new("m")
}
