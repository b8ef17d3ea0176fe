//! Services and machines with invalid responses.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{ErrorKind, Retry};
use agent_tools::sandbox::{Command, LARGEST_FILE, Sandbox};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::service::{
    KEY, Service, bytes_answer, json_answer,
    programs::{frame, stream},
    redirect, refused,
};

const STREAM: &str = "application/connect+json";

/// First message of every stream, with output: the wrapper's ready byte, and a letter.
fn begun() -> Vec<u8> {
    let start = frame(0, &json!({"event": {"start": {"pid": 7}}}));
    let data = frame(0, &json!({"event": {"data": {"stdout": "AXg="}}}));
    [start, data].concat()
}

#[tokio::test]
async fn a_stream_that_is_damaged_loses_the_program_and_gives_no_end_that_is_none() {
    let end = frame(0, &json!({"event": {"end": {"exited": true}}}));
    let cases: [(&str, Vec<u8>); 11] = [
        ("it ends", Vec::new()),
        ("in the middle of a head", vec![0, 0, 0]),
        ("in the middle of a message", end[..end.len() - 3].into()),
        ("garbage", b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        ("a length of four gigabytes", [&[0, 255, 255, 255, 255][..], &[b'x'; 4096]].concat()),
        ("no JSON", [&[0, 0, 0, 0, 4][..], b"nope"].concat()),
        ("an event that is a list", frame(0, &json!({"event": [1]})).into()),
        ("an output that is no base64", frame(0, &json!({"event": {"data": {"stdout": "%%%"}}})).into()),
        ("a code that is no number", frame(0, &json!({"event": {"end": {"exited": true, "exitCode": 1e99}}})).into()),
        ("compressed", [&[1, 0, 0, 0, 2][..], b"{}"].concat()),
        ("an error", frame(2, &json!({"error": {"code": "internal", "message": "x".repeat(9_000)}})).into()),
    ];
    for (what, bytes) in cases {
        let service = Service::start().await;
        let sandbox = service.sandbox().await;
        let answer = [begun(), bytes].concat();
        // The first start is the program; later ones kill its remaining processes.
        let starts = AtomicUsize::new(0);
        service.trouble(move |line| {
            let first = line.contains("Process/Start") && starts.fetch_add(1, Ordering::Relaxed) == 0;
            first.then(|| bytes_answer(200, STREAM, answer.clone()))
        });
        let mut process = sandbox.start(Command::new("x")).await.expect("begins");
        assert_eq!(process.output().await.expect("writes"), "x", "{what}");
        assert_eq!(process.output().await, None, "{what}");
        let lost = timeout(Duration::from_secs(50), process.exit()).await.expect("in time").expect_err(what);
        assert!(lost.message().contains("lost the program"), "{what}: {lost}");
    }
}

#[tokio::test]
async fn a_program_that_does_not_begin_is_an_error() {
    let end = frame(0, &json!({"event": {"end": {"exited": true, "exitCode": 1}}}));
    let start = frame(0, &json!({"event": {"start": {"pid": 7}}}));
    let error = frame(2, &json!({"error": {"code": "unauthenticated", "message": format!("not {KEY}")}}));
    let cases: [(&str, Vec<u8>, ErrorKind); 6] = [
        ("nothing", Vec::new(), ErrorKind::Tool),
        ("an end before the start", end.clone().into(), ErrorKind::Tool),
        ("a number below zero", frame(0, &json!({"event": {"start": {"pid": -1}}})).into(), ErrorKind::Tool),
        ("an error", error.into(), ErrorKind::Authentication),
        ("an end before the gate", [&start[..], &end].concat(), ErrorKind::Tool),
        (
            "a gate that is none",
            [&start[..], &frame(0, &json!({"event": {"data": {"stdout": "eA=="}}}))].concat(),
            ErrorKind::Tool,
        ),
    ];
    for (what, bytes, kind) in cases {
        let service = Service::start().await;
        let sandbox = service.sandbox().await;
        service.trouble(move |line| line.contains("Process/Start").then(|| bytes_answer(200, STREAM, bytes.clone())));
        let error = sandbox.start(Command::new("x")).await.expect_err(what);
        assert_eq!(error.kind(), kind, "{what}: {error}");
        assert!(error.message().len() < 900, "{what}");
    }
}

#[tokio::test]
async fn a_machine_that_says_nothing_is_given_up() {
    let service = Service::start().await;
    let sandbox = service.sandbox().await;
    let held = Arc::new(std::sync::Mutex::new(Vec::new()));
    let holding = held.clone();
    service.trouble(move |line| {
        let (told, answer) = mpsc::channel(4);
        if !line.contains("Process/Start") {
            return None;
        }
        told.try_send(begun().into()).expect("is new");
        holding.lock().expect("no panic").push(told);
        Some(stream(answer))
    });
    let mut process = sandbox.start(Command::new("x")).await.expect("begins");
    assert_eq!(process.output().await.expect("writes"), "x");
    tokio::time::pause();
    assert!(process.exit().await.expect_err("is lost").message().contains("lost the program"));
}

#[tokio::test]
async fn answers_that_are_none_are_errors_that_are_bounded_and_hold_no_secret() {
    let large = "x".repeat(200_000);
    let token = "token-of";
    for (what, path, answer) in [
        ("no JSON", "Stat", ("200", "<html>".to_owned())),
        ("a list", "Stat", ("200", "[]".to_owned())),
        ("no entry", "Stat", ("200", "{}".to_owned())),
        ("a large refusal", "Stat", ("400", json!({"code": "internal", "message": large}).to_string())),
        ("a refusal that is no JSON", "Stat", ("500", large.clone())),
        ("a redirect", "Stat", ("307", String::new())),
        ("an empty listing of nonsense", "ListDir", ("200", "{\"entries\": 5}".to_owned())),
    ] {
        let service = Service::start().await;
        let elsewhere = Service::start().await;
        let sandbox = service.sandbox().await;
        let (status, body) = (answer.0.parse().expect("is a number"), answer.1);
        let to = elsewhere.url();
        service.trouble(move |line| {
            let right = line.contains(path);
            let answer =
                || if status == 307 { redirect(&to) } else { bytes_answer(status, "application/json", body.clone()) };
            right.then(answer)
        });
        let error = match path {
            "Stat" => sandbox.stat("f").await.map(drop),
            _ => sandbox.list("").await.map(drop),
        };
        let error = error.expect_err(what);
        assert!(error.message().len() < 900, "{what}");
        assert!(!format!("{error:?}").contains(token), "{what}: {error:?}");
        assert!(elsewhere.seen().is_empty(), "{what}: no secret goes elsewhere");
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_or_cut_is_none() {
    let service = Service::start().await;
    let sandbox = service.sandbox().await;
    let most = usize::try_from(LARGEST_FILE).expect("fits");
    service.trouble(move |line| {
        line.starts_with("GET /files").then(|| bytes_answer(200, "application/octet-stream", vec![0; most + 1]))
    });
    let large = sandbox.read("f").await.expect_err("is too large");
    assert!(large.message().contains("'f' has more than the"), "{large}");
    let larger = sandbox.write("f", vec![0; most + 1].into()).await.expect_err("is too large");
    assert!(larger.message().contains("'f' has more than the"), "{larger}");
    service.trouble(|line| {
        let (told, answer) = mpsc::channel(1);
        told.try_send("part".into()).expect("is new");
        let mut answer = stream(answer);
        answer.headers_mut().insert("content-length", 4096.into());
        line.starts_with("GET /files").then_some(answer)
    });
    let cut = sandbox.read("f").await.expect_err("is cut");
    assert!(matches!(cut.retry(), Retry::Temporary(_)), "{cut:?}");
}

#[tokio::test]
async fn what_is_safe_is_tried_again_and_nothing_else_is() {
    for (what, path, status, expected) in [
        ("a look", "Stat", 503, 3),
        ("a download", "GET /files", 503, 3),
        ("an upload under a name of its own", "POST /files", 503, 3),
        ("a start", "Start", 503, 1),
        ("too many looks", "Stat", 429, 3),
        ("what is wrong", "Stat", 400, 1),
    ] {
        let service = Service::start().await;
        let sandbox = service.sandbox().await;
        let tried = Arc::new(AtomicUsize::new(0));
        let counted = tried.clone();
        service.trouble(move |line| {
            let right = line.contains(path);
            counted.fetch_add(usize::from(right), Ordering::Relaxed);
            right.then(|| refused(status, "not now"))
        });
        let failed = match path {
            "Stat" => sandbox.stat("f").await.map(drop),
            "GET /files" => sandbox.read("f").await.map(drop),
            "POST /files" => sandbox.write("f", "x".into()).await,
            _ => sandbox.start(Command::new("true")).await.map(drop),
        };
        let failed = failed.expect_err(what);
        assert!(failed.message().contains("not now"), "{what}: {failed}");
        assert_eq!(tried.load(Ordering::Relaxed), expected, "{what}");
        service.trouble(|_| None);
        assert_eq!(sandbox.stat("f").await.expect("is told"), None, "{what}: it goes on");
    }
}

#[tokio::test]
async fn a_service_that_makes_what_it_must_not_is_refused() {
    let made = |more: Value| {
        let mut made = json!({"sandboxID": "i1", "envdAccessToken": "t-0123456789"});
        made.as_object_mut().expect("is one").extend(more.as_object().cloned().expect("is one"));
        made
    };
    for (what, answer, expected) in [
        (
            "an identifier that leads elsewhere",
            made(json!({"sandboxID": "x.evil.example/"})),
            "letters, digits and '-'",
        ),
        ("no identifier", json!({"envdAccessToken": "t"}), "not its interface"),
        ("no token", made(json!({"envdAccessToken": null})), "anybody could use it"),
        ("a token that is no header", made(json!({"envdAccessToken": "a\r\nb: c"})), "is no key"),
        ("a domain that is none", made(json!({"domain": "u:p@evil.example/x?"})), "not the address of a service"),
        ("a domain that is private", made(json!({"domain": "localtest.invalid"})), "cannot be found"),
    ] {
        let service = Service::start().await;
        let builder = agent_tools::sandbox::E2bSandbox::builder("base", KEY).api_url(service.url());
        service.trouble(move |line| (line == "POST /sandboxes").then(|| json_answer(201, &answer)));
        let error = builder.build().await.expect_err(what);
        assert!(error.message().contains(expected), "{what}: {error}");
    }
    // A service that reports no network setting counts as having a network, and one that cannot
    // close an input cannot run programs.
    let service = Service::start().await;
    service.trouble(|line| line.starts_with("GET /sandboxes/").then(|| json_answer(200, &json!({}))));
    let open = service.builder("base").build().await.expect_err("is open");
    assert!(open.message().contains("no network"), "{open}");
    let removed = service.seen().iter().any(|line| line.starts_with("DELETE /sandboxes/"));
    assert!(removed, "what cannot be used is removed");
}
