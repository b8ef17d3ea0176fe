//! Models of Amazon Bedrock by name: their authentication, with credentials from local servers.
//! Each case is a process, because the environment determines the identity. With the feature
//! `aws-sdk` the same cases run with the SDK's credential chain.
#![cfg(all(feature = "bedrock", feature = "http"))]

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
};

use agent_core::{History, Message, Model, ModelRequest, testing::detached_run};
use agent_llm::{AwsIdentity, LayeredModel, Transport, conformance::framed, model, transport_fn};
use http::Response;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
};

fn request(stream: bool) -> ModelRequest {
    let run = detached_run(History::from_messages([Message::user("hi")]).expect("a message"));
    let mut request = ModelRequest::new(run.cx().clone());
    request.stream = stream;
    request
}

/// Calls a model by name, twice, and prints the requests that its provider received, or the error.
#[tokio::test]
#[ignore = "a part of the others, in a process of its own"]
async fn asks() {
    let Ok(name) = std::env::var("ASKED_MODEL") else { return };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shown = seen.clone();
    let provider = transport_fn(move |request| {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("-").to_owned();
        let line = format!("{} {} {}", request.uri(), header("authorization"), header("x-amz-security-token"));
        shown.lock().expect("a lock").push(line);
        async { Ok(Response::builder().status(400).body(r#"{"message":"no reason"}"#.into()).expect("an answer")) }
    });
    let builder = model(&name).transport(provider).retries(0);
    let builder = if std::env::var_os("OWN_SEARCH").is_some() { builder.signer(AwsIdentity::new()) } else { builder };
    let model = match builder.build() {
        Ok(model) => model,
        Err(error) => return println!("SEEN {error}"),
    };
    for _ in 0..2 {
        let error = model.call(request(false)).await.expect_err("a refusal");
        if !error.message().contains("no reason") {
            println!("SEEN {error:?}");
        }
    }
    seen.lock().expect("a lock").iter().for_each(|line| println!("SEEN {line}"));
}

const KEYS: &str = r#"{"Code":"Success","LastUpdated":"2026-01-01T00:00:00Z","Type":"AWS-HMAC","AccessKeyId":"AKNEAR","SecretAccessKey":"s","Token":"t-near","Expiration":"2099-01-01T00:00:00Z"}"#;

const OF_ROLE: &str = "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>\
    <AssumedRoleUser><AssumedRoleId>AROA:me</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/pod/me</Arn></AssumedRoleUser><Credentials>\
    <AccessKeyId>AKROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t-role</SessionToken>\
    <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";

/// Returns the response of AWS's servers to this request.
fn answer(asked: &str) -> (u16, &'static str) {
    let path = asked.split(' ').nth(1).unwrap_or_default();
    match path {
        "/latest/api/token" => (200, "token-of-it"),
        "/latest/meta-data/iam/security-credentials/" => (200, "my-role"),
        "/latest/meta-data/iam/security-credentials/my-role" | "/keys" => (200, KEYS),
        "/" if asked.contains("Action=AssumeRoleWithWebIdentity") => (200, OF_ROLE),
        _ => (404, ""),
    }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return String::from_utf8_lossy(&request).into_owned();
            }
        }
        if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
            return String::from_utf8_lossy(&request).into_owned();
        }
    }
}

async fn serve(listener: TcpListener, asked: Arc<Mutex<Vec<String>>>) {
    loop {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let request = read(&mut stream).await;
        let (status, body) = answer(&request);
        asked.lock().expect("a lock").push(request);
        let head = format!(
            "HTTP/1.1 {status} OK\r\nx-aws-ec2-metadata-token-ttl-seconds: 300\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    }
}

/// Runs a process with these variables; returns the authentication that its provider received, and
/// the requests to AWS's servers. `{server}` is the URL of those servers, `{home}` a directory with
/// `files`.
async fn shown(name: &str, variables: &[(&str, &str)], files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let server = tokio::spawn(serve(listener, asked.clone()));
    let home = tempfile::tempdir().expect("a directory");
    for (file, text) in files {
        let path = home.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "bedrock::asks", "--ignored", "--nocapture"])
        .env("ASKED_MODEL", name)
        .stdout(Stdio::piped());
    for (known, _) in std::env::vars().filter(|(known, _)| known.starts_with("AWS_")) {
        command.env_remove(known);
    }
    command.env("HOME", home.path()).env("AWS_EC2_METADATA_DISABLED", "true");
    for (variable, value) in variables {
        let value = value.replace("{server}", &url).replace("{home}", &home.path().display().to_string());
        command.env(variable, value);
    }
    let output = command.output().await.expect("runs");
    server.abort();
    let text = String::from_utf8_lossy(&output.stdout);
    let seen = text.lines().filter_map(|line| line.split("SEEN ").nth(1).map(str::to_owned)).collect();
    let asked = asked.lock().expect("a lock").clone();
    (seen, asked)
}

const MODEL: &str = "bedrock:us.amazon.nova-pro-v1:0";

/// Asserts that both calls were signed with this key, for this region, with this token.
fn assert_signed(seen: &[String], key: &str, region: &str, token: &str) {
    assert_eq!(seen.len(), 2, "{seen:#?}");
    for line in seen {
        let address =
            format!("https://bedrock-runtime.{region}.amazonaws.com/model/us.amazon.nova-pro-v1%3A0/converse ");
        assert!(line.starts_with(&address), "{seen:#?}");
        assert!(
            line.contains(&format!(" Credential={key}/")) && line.contains(&format!("/{region}/bedrock/")),
            "{seen:#?}"
        );
        assert!(line.contains("SignedHeaders=content-type;host;x-amz-date") && line.ends_with(token), "{seen:#?}");
    }
}

const SEARCHES: [(&str, &str); 2] = [("A", "the one by name"), ("OWN_SEARCH", "our own")];

#[tokio::test]
async fn requests_are_signed_with_the_keys_of_the_environment() {
    for search in SEARCHES {
        let of_env =
            [("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "AKENV"), ("AWS_SECRET_ACCESS_KEY", "s"), search];
        let (seen, asked) = shown(MODEL, &of_env, &[]).await;
        assert_signed(&seen, "AKENV", "eu-west-1", "-");
        assert!(asked.is_empty());
    }
}

#[tokio::test]
async fn requests_are_signed_with_the_keys_of_a_profile_for_its_region() {
    let files = [
        (
            ".aws/credentials",
            "[work]\naws_access_key_id = AKWORK\naws_secret_access_key = s\naws_session_token = t-work\n",
        ),
        (".aws/config", "[default]\nregion = us-east-1\n[profile work]\nregion = ap-south-1\n"),
    ];
    for search in SEARCHES {
        let (seen, _) = shown(MODEL, &[("AWS_PROFILE", "work"), search], &files).await;
        assert_signed(&seen, "AKWORK", "ap-south-1", "t-work");
    }
}

#[tokio::test]
async fn requests_are_signed_with_the_keys_that_a_workload_gets_for_its_token_once() {
    for search in SEARCHES {
        let variables = [
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ENDPOINT_URL_STS", "{server}/"),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "{home}/token"),
            search,
        ];
        let (seen, asked) = shown(MODEL, &variables, &[("token", "eyJ.the-token")]).await;
        assert_signed(&seen, "AKROLE", "eu-west-1", "t-role");
        assert_eq!(asked.len(), 1, "keys are kept: {asked:#?}");
        assert!(asked[0].contains("WebIdentityToken=eyJ.the-token"), "{asked:#?}");
    }
}

#[tokio::test]
async fn requests_are_signed_with_the_keys_of_a_container_or_of_a_machine() {
    for search in SEARCHES {
        let region = ("AWS_REGION", "eu-west-1");
        let container = [
            region,
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "{server}/keys"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-the-pod"),
            search,
        ];
        let (seen, asked) = shown(MODEL, &container, &[]).await;
        assert_signed(&seen, "AKNEAR", "eu-west-1", "t-near");
        assert!(asked.len() == 1 && asked[0].contains("of-the-pod"), "{asked:#?}");
        // The SDK must be configured to bypass the proxy for the machine's own server.
        let is_sdk = cfg!(feature = "aws-sdk") && search.0 != "OWN_SEARCH";
        let machine = [
            region,
            ("NO_PROXY", if is_sdk { "127.0.0.1" } else { "" }),
            ("AWS_EC2_METADATA_DISABLED", "false"),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "{server}"),
            ("HTTP_PROXY", "http://127.0.0.1:1"),
            search,
        ];
        let (seen, asked) = shown(MODEL, &machine, &[]).await;
        assert_signed(&seen, "AKNEAR", "eu-west-1", "t-near");
        assert!(asked.iter().any(|asked| asked.starts_with("PUT /latest/api/token")), "{asked:#?}");
    }
}

#[tokio::test]
async fn a_key_of_bedrocks_own_is_shown_before_any_other() {
    let variables = [
        ("AWS_REGION", "eu-west-1"),
        ("AWS_BEARER_TOKEN_BEDROCK", "ABSK-key"),
        ("AWS_ACCESS_KEY_ID", "AKENV"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    let (seen, _) = shown(MODEL, &variables, &[]).await;
    assert!(seen.iter().all(|line| line.ends_with("/converse Bearer ABSK-key -")) && seen.len() == 2, "{seen:#?}");
    let (seen, _) = shown(MODEL, &[], &[]).await;
    assert!(seen.len() == 1 && seen[0].contains("AWS_REGION or AWS_DEFAULT_REGION"), "{seen:#?}");
}

fn at(transport: impl Transport, name: &str) -> LayeredModel {
    let builder = model(name).option("region", "us-east-1").api_key("ABSK-key").transport(transport);
    builder.retries(0).build().expect("a model")
}

#[tokio::test]
async fn a_stream_of_frames_is_an_answer_on_both_wires() {
    let converse = [
        r#"{"messageStart":{"role":"assistant"}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"Grüezi"}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
        r#"{"messageStop":{"stopReason":"end_turn"}}"#,
        r#"{"metadata":{"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5}}}"#,
    ];
    let messages = [
        r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüezi"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    for (name, path, events) in [
        ("bedrock:anthropic.claude-opus-4-6-v1", "/converse-stream", &converse[..]),
        ("bedrock:anthropic.claude-opus-4-6-v1@messages", "/invoke-with-response-stream", &messages),
    ] {
        let body = framed(agent_llm::Framing::AwsEvents, events);
        let provider = transport_fn(move |request| {
            assert!(request.uri().path().ends_with(path), "{}", request.uri());
            assert_eq!(request.headers()["authorization"], "Bearer ABSK-key");
            let answer = Response::builder().header("content-type", "application/vnd.amazon.eventstream");
            let answer = answer.body(body.clone().into()).expect("an answer");
            async { Ok(answer) }
        });
        let answer = at(provider, name).call(request(true)).await.expect("an answer");
        assert_eq!((answer.message.text().as_str(), answer.usage.total()), ("Grüezi", 5), "{name}");
    }
}
