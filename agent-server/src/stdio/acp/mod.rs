//! The agent's side of the Agent Client Protocol, version 1.

mod content;
mod desk;
mod permission;
mod told;
mod turn;

use std::sync::Arc;

use agent::{Error, ErrorKind, Result};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use self::desk::{Desk, Refusal};
use super::{client, lines};
use crate::App;

/// A message of the client's, before it is known what it is.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Option<Value>,
}

/// Answers until the client closes its end.
pub(super) async fn serve(
    app: App,
    agent: &str,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<()> {
    let caller = client();
    app.agent(&caller, agent).map_err(|error| Error::new(ErrorKind::InvalidRequest, error.message().to_owned()))?;
    let (mut lines, out, writing) = lines::open(reader, writer);
    let desk = Arc::new(Desk::new(app, caller, agent.into(), out));
    // What is under way when the client goes away is dropped with its task, which cancels it.
    let mut under_way = JoinSet::new();
    while let Some(line) = lines.next().await? {
        let message = line.and_then(|line| serde_json::from_value::<Envelope>(line).map_err(|e| e.to_string()));
        match message {
            Ok(Envelope { id: Some(id), method: Some(method), params, .. }) => {
                under_way.spawn(desk.clone().answer(id, method, params));
            }
            Ok(Envelope { method: Some(method), params, .. }) => desk.hear(&method, &params),
            Ok(Envelope { id: Some(id), result, .. }) => desk.answered(&id, result),
            Ok(_) => {}
            Err(message) => desk.reply(&Value::Null, Err(Refusal::garbled(message))).await,
        }
        while under_way.try_join_next().is_some() {}
    }
    under_way.shutdown().await;
    drop(desk);
    let _ = writing.await;
    Ok(())
}
