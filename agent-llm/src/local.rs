//! Model servers on this machine.
//!
//! [`find`] detects a running server; [`Ollama`] lists and pulls the models of an Ollama server.

mod ollama;

use std::time::Duration;

use agent_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::Request;
use serde::Deserialize;

pub use self::ollama::{LoadedModel, Ollama, OllamaFacts, OllamaModel, PullProgress};
use crate::{Body, HttpTransport, Transport};

/// Default ports of common servers.
const USUAL: [(&str, u16); 4] = [("Ollama", 11434), ("llama.cpp", 8080), ("vLLM", 8000), ("LM Studio", 1234)];
/// Timeout of each probe (all run in parallel); a local server responds at once.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum size of a model list, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// A model server on this machine that speaks the OpenAI protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalServer {
    /// Name of the server that uses this port by default.
    pub name: &'static str,
    /// Base URL, up to and including `/v1`.
    pub base_url: String,
    /// Models that the server offers; at least one.
    pub models: Vec<String>,
}

#[derive(Deserialize)]
struct List {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
}

/// Looks for a server on the default ports of the loopback address (Ollama, llama.cpp, vLLM, LM
/// Studio), in that order.
///
/// Takes at most half a second for all probes together.
pub async fn find() -> Option<LocalServer> {
    let transport = HttpTransport::default();
    let asked = stream::iter(USUAL).map(|(name, port)| ask(&transport, name, format!("http://127.0.0.1:{port}/v1")));
    asked.buffered(USUAL.len()).filter_map(|found| async { found.ok() }).boxed().next().await
}

async fn ask(transport: &impl Transport, name: &'static str, base_url: String) -> Result<LocalServer> {
    let not_there = |why: String| Error::new(ErrorKind::Transport, why);
    let list = async {
        let request = Request::get(format!("{base_url}/models")).body(Bytes::new());
        let request = request.map_err(|e| not_there(e.to_string()))?;
        let bytes = whole(transport.send(request).await?.into_body(), MOST_BYTES).await?;
        serde_json::from_slice::<List>(&bytes).map_err(|e| not_there(e.to_string()))
    };
    let list = tokio::time::timeout(PATIENCE, list).await.map_err(|_| not_there("no answer in time".into()))??;
    let models: Vec<_> = list.data.into_iter().map(|entry| entry.id).collect();
    if models.is_empty() {
        return Err(not_there("it offers no models".into()));
    }
    Ok(LocalServer { name, base_url, models })
}

/// Reads a whole body of at most `most` bytes.
async fn whole(mut body: Body, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.try_next().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > most {
            return Err(Error::new(ErrorKind::Protocol, format!("the answer is longer than {most} bytes")));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport_fn;

    #[tokio::test]
    async fn a_server_is_one_only_if_it_lists_models() {
        let answers = |text: &'static str| transport_fn(move |_| async move { Ok(http::Response::new(text.into())) });
        let found = ask(&answers(r#"{"data": [{"id": "small"}]}"#), "x", "http://127.0.0.1:1/v1".into()).await;
        assert_eq!(found.expect("found").models, ["small"]);
        for other in ["<html>", r#"{"data": []}"#, "{}"] {
            assert!(ask(&answers(other), "x", "http://127.0.0.1:1/v1".into()).await.is_err(), "{other}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_not_waited_for() {
        let silent = transport_fn(|_| std::future::pending());
        assert!(ask(&silent, "x", "http://127.0.0.1:1/v1".into()).await.is_err());
    }
}
