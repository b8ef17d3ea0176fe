//! Access tokens of cloud providers, from local token servers. Each case is a process, because the
//! environment determines the identity.
#![cfg(all(feature = "entra", feature = "gcp", feature = "http"))]

use std::{process::Stdio, sync::Arc};

use agent_core::{ErrorKind, History, Message, Model, ModelRequest, testing::detached_run};
use agent_llm::{model, transport_fn};
use http::Response;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    process::Command,
};

/// Calls a model by name, and prints the authorisation that its provider received, or the error.
#[tokio::test]
#[ignore = "a part of the others, in a process of its own"]
async fn asks() {
    let Ok(name) = std::env::var("ASKED_MODEL") else { return };
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let shown = seen.clone();
    let provider = transport_fn(move |request| {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("-").to_owned();
        shown.lock().expect("a lock").push(format!("{} {}", header("authorization"), header("api-key")));
        async { Ok(Response::builder().status(400).body("{}".into()).expect("an answer")) }
    });
    let model = model(&name).transport(provider).retries(0).build().expect("a model");
    for _ in 0..2 {
        let run = detached_run(History::from_messages([Message::user("hi")]).expect("a message"));
        let error = model.call(ModelRequest::new(run.cx().clone())).await.expect_err("a refusal");
        if error.kind() != ErrorKind::InvalidRequest {
            println!("SEEN {error:?}");
        }
    }
    println!("SEEN {:?}", seen.lock().expect("a lock"));
}

/// Runs a process with these variables; returns its output, and the requests to the token server. A
/// value that is JSON is written to a file.
async fn shown(name: &str, variables: &[(&str, &str)], answer: &'static str) -> (String, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = asked.clone();
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut request = vec![0; 16 << 10];
            let read = stream.read(&mut request).await.unwrap_or_default();
            heard.lock().expect("a lock").push(String::from_utf8_lossy(&request[..read]).into_owned());
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let whole = format!("{head}content-length: {}\r\n\r\n{answer}", answer.len());
            let _ = stream.write_all(whole.as_bytes()).await;
        }
    });
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "identity::asks", "--ignored", "--nocapture"])
        .env("ASKED_MODEL", name)
        .stdout(Stdio::piped());
    let dir = tempfile::tempdir().expect("a directory");
    for (variable, value) in variables {
        let value = value.replace("{server}", &url);
        let file = dir.path().join(variable);
        match value.starts_with("{\"") {
            true => std::fs::write(&file, value).map(|()| command.env(variable, &file)).expect("a file"),
            false => command.env(variable, value),
        };
    }
    let output = command.output().await.expect("runs");
    server.abort();
    let text = String::from_utf8_lossy(&output.stdout);
    let seen = text.lines().filter_map(|line| line.split("SEEN ").nth(1)).collect::<Vec<_>>().join("\n");
    let asked = asked.lock().expect("a lock").clone();
    (seen, asked)
}

#[tokio::test]
async fn a_model_of_vertex_takes_the_token_of_a_service_account_and_keeps_it() {
    let account = json!({"type": "service_account", "client_email": "me@p.test", "project_id": "p", "token_uri": "{server}/token",
        "private_key": include_str!("data/no_secret.pem")});
    let account = account.to_string();
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", &*account), ("GOOGLE_CLOUD_PROJECT", "p")];
    let token = r#"{"access_token":"ya29.token","expires_in":3600,"token_type":"Bearer"}"#;
    let (seen, asked) = shown("vertex:gemini-2.5-pro", &variables, token).await;
    assert_eq!(seen, r#"["Bearer ya29.token -", "Bearer ya29.token -"]"#);
    assert_eq!(asked.len(), 1, "a token is kept: {asked:?}");
    assert!(asked[0].starts_with("POST /token ") && asked[0].contains("grant_type="), "{asked:?}");
}

#[tokio::test]
async fn a_model_of_azure_takes_the_token_of_the_machines_identity_as_a_bearer_and_keeps_it() {
    let token = r#"{"access_token":"eyJ-token","expires_on":"4102444800","resource":"r","token_type":"Bearer"}"#;
    let variables = [
        ("IDENTITY_ENDPOINT", "{server}/msi/token"),
        ("IDENTITY_HEADER", "secret-of-the-machine"),
        ("AZURE_OPENAI_RESOURCE", "acme"),
        ("AZURE_OPENAI_API_KEY", ""),
    ];
    let (seen, asked) = shown("azure:gpt-5", &variables, token).await;
    assert_eq!(seen, r#"["Bearer eyJ-token -", "Bearer eyJ-token -"]"#);
    assert_eq!(asked.len(), 1, "a token is kept: {asked:?}");
    assert!(
        asked[0].contains("cognitiveservices.azure.com") && asked[0].contains("secret-of-the-machine"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_key_of_the_environment_goes_before_an_identity() {
    let variables = [
        ("IDENTITY_ENDPOINT", "{server}/msi/token"),
        ("IDENTITY_HEADER", "secret"),
        ("AZURE_OPENAI_RESOURCE", "acme"),
        ("AZURE_OPENAI_API_KEY", "sk-1"),
    ];
    let (seen, asked) = shown("azure:gpt-5", &variables, "{}").await;
    assert_eq!((&*seen, asked.len()), (r#"["- sk-1", "- sk-1"]"#, 0));
}
