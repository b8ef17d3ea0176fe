use std::sync::Mutex;

use bytes::Bytes;
use futures::StreamExt;
use http::{Response, StatusCode};

use super::*;
use crate::transport_fn;

type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Creates a server that gives this answer, and a recorder of its requests.
fn server_of(status: u16, pieces: &[&'static str]) -> (Ollama, Asked) {
    let (asked, pieces) = (Asked::default(), pieces.to_vec());
    let seen = asked.clone();
    let transport = transport_fn(move |request| {
        let body = String::from_utf8(request.body().to_vec()).expect("JSON");
        seen.lock().expect("lock").push((format!("{} {}", request.method(), request.uri()), body));
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        let mut response = Response::new(Body::new(stream::iter(pieces)));
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        async move { Ok(response) }
    });
    (Ollama::new("http://gpu7:11434/v1/").transport(transport), asked)
}

#[tokio::test]
async fn a_server_says_which_models_it_has_and_which_are_loaded() {
    let list =
        r#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b","size":5200,"digest":"d1","details":{"format":"gguf"}}]}"#;
    let (server, asked) = server_of(200, &[list]);
    let models = server.models().await.expect("a list");
    assert_eq!((&*models[0].name, models[0].size, &*models[0].digest), ("qwen3:8b", 5_200, "d1"));
    let all = asked.lock().expect("lock").clone();
    assert_eq!(all, [("GET http://gpu7:11434/api/tags".to_owned(), String::new())]);

    let loaded = r#"{"models":[{"name":"qwen3:8b","size":6000,"size_vram":5000,"context_length":4096,"expires_at":"2026-01-02T03:04:05Z"}]}"#;
    let loaded = server_of(200, &[loaded]).0.loaded().await.expect("a list");
    assert_eq!((loaded[0].size_vram, loaded[0].context_length), (5_000, Some(4_096)));
}

#[tokio::test]
async fn what_is_known_of_a_model_has_its_window_and_what_it_can_do() {
    let facts = r#"{"license":"..","capabilities":["completion","tools"],
        "model_info":{"general.architecture":"qwen3","qwen3.context_length":40960,"qwen3.block_count":36}}"#;
    let (server, asked) = server_of(200, &[facts]);
    let facts = server.show("qwen3:8b").await.expect("facts");
    assert_eq!((facts.context_window(), facts.can("tools"), facts.can("vision")), (Some(40_960), true, false));
    assert_eq!(asked.lock().expect("lock")[0].1, r#"{"model":"qwen3:8b"}"#);
    let error = server_of(404, &[r#"{"error":"model 'x' not found"}"#]).0.show("x").await.expect_err("not there");
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, "model 'x' not found"));
}

#[tokio::test]
async fn a_pull_tells_how_far_it_has_come_until_the_model_is_there() {
    let (server, asked) = server_of(
        200,
        &[
            "{\"status\":\"pulling manifest\"}\n{\"status\":\"pulling d1\",\"digest\":\"d1\",",
            "\"total\":100,\"completed\":40}\n",
            "{\"status\":\"success\"}",
        ],
    );
    let told: Vec<_> = server.pull("qwen3:8b").map(|told| told.expect("progress")).collect().await;
    let states: Vec<_> = told.iter().map(|told| &*told.status).collect();
    assert_eq!(states, ["pulling manifest", "pulling d1", "success"]);
    assert_eq!((told[1].total, told[1].completed), (Some(100), Some(40)));
    assert_eq!(asked.lock().expect("lock")[0].0, "POST http://gpu7:11434/api/pull");
}

#[tokio::test]
async fn a_pull_that_fails_or_is_cut_is_an_error() {
    for (status, piece, kind) in [
        (200, "{\"status\":\"pulling manifest\"}\n", ErrorKind::Truncated),
        (200, "{\"error\":\"pull model manifest: file does not exist\"}\n", ErrorKind::Provider),
        (200, "<html>", ErrorKind::Protocol),
        (401, "{\"error\":\"unauthorized\"}", ErrorKind::Authentication),
    ] {
        let told: Vec<_> = server_of(status, &[piece]).0.pull("x").collect().await;
        let error = told.last().and_then(|last| last.as_ref().err()).expect("an error at the end");
        assert_eq!(error.kind(), kind, "{piece}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let silent = Ollama::new("http://gpu7:11434").transport(transport_fn(|_| std::future::pending())).api_key("secret");
    assert_eq!(silent.models().await.expect_err("silence").kind(), ErrorKind::Timeout);
    assert!(!format!("{silent:?}").contains("secret"));
}
