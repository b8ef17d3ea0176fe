//! Servers whose messages are not quite those of the protocol, and servers that move, report and change.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{Effect, Event, EventKind, Toolset};
use agent_tools::mcp::{Client, ClientBuilder, Http, Reader, Streams, Writer};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use super::support::*;

/// The answer to a request with this method and id, as raw lines; `None` for the usual one.
type Script = dyn Fn(&str, &Value, usize) -> Option<Vec<String>> + Send + Sync;

fn usual(method: &str, id: &Value) -> String {
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "s", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ => json!({}),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// Counts the requests of each method, and yields the lines that answer a request.
fn answers(script: &Script, line: &[u8], counts: &Mutex<Vec<String>>) -> Option<Vec<String>> {
    let mut asked: Value = serde_json::from_slice(line).expect("JSON");
    asked["line"] = String::from_utf8_lossy(line).into();
    let method = asked["method"].as_str()?.to_owned();
    let id = asked.get("id")?;
    let nth = {
        let mut counts = counts.lock().expect("free");
        counts.push(method.clone());
        counts.iter().filter(|one| **one == method).count()
    };
    Some(script(&method, &asked, nth).unwrap_or_else(|| vec![usual(&method, id)]))
}

/// A client of a scripted server over streams.
fn over_streams(script: impl Fn(&str, &Value, usize) -> Option<Vec<String>> + Send + Sync + 'static) -> ClientBuilder {
    let (script, counts): (Arc<Script>, Arc<Mutex<Vec<String>>>) = (Arc::new(script), Arc::default());
    let streams = Streams::new(move || {
        let (script, counts) = (script.clone(), counts.clone());
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(1 << 20);
            let (reader, mut writer) = tokio::io::split(far);
            tokio::spawn(async move {
                let mut lines = BufReader::new(reader).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    for answer in answers(&*script, line.as_bytes(), &counts).into_iter().flatten() {
                        match answer.strip_prefix("wait ") {
                            Some(seconds) => {
                                tokio::time::sleep(Duration::from_secs(seconds.parse().expect("a number"))).await;
                            }
                            None => {
                                let _ = writer.write_all(format!("{answer}\n").as_bytes()).await;
                            }
                        }
                    }
                }
            });
            let (reader, writer) = tokio::io::split(near);
            Ok((Box::new(reader) as Reader, Box::new(writer) as Writer))
        })
    });
    Client::builder("s", streams).prefix("")
}

/// A scripted server over streamable HTTP, which answers with events or with JSON; a path that begins with `/from` is redirected.
async fn over_http(
    events: bool,
    redirect: &'static str,
    script: impl Fn(&str, &Value, usize) -> Option<Vec<String>> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (script, counts): (Arc<Script>, Arc<Mutex<Vec<String>>>) = (Arc::new(script), Arc::default());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (script, counts) = (script.clone(), counts.clone());
            tokio::spawn(async move {
                let (head, body) = read(&mut stream).await?;
                let plain =
                    |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let text = if head.contains(" /from ") {
                    plain(redirect).replace("{origin}", &format!("http://{address}"))
                } else if !head.starts_with("POST") {
                    plain("405 Method Not Allowed")
                } else {
                    match answers(&*script, &body, &counts) {
                        None => plain("202 Accepted"),
                        Some(lines) => {
                            let (kind, body) = match events {
                                true => ("text/event-stream", lines.iter().map(|l| format!("data: {l}\n\n")).collect()),
                                false => ("application/json", lines.concat()),
                            };
                            let length = body.len();
                            format!(
                                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                            )
                        }
                    }
                };
                stream.write_all(text.as_bytes()).await
            });
        }
    });
    format!("http://{address}/mcp")
}

/// Result texts that are not JSON, with what becomes of them.
const ODD: &[(&str, &str)] = &[
    (r#"{"content":[{"type":"text","text":"a\ud83db"}]}"#, "a\u{fffd}b"),
    (r#"{"content":[{"type":"text","text":"ratio"}],"structuredContent":{"ratio":NaN}}"#, "ratio"),
    (r#"{"content":[{"type":"text","text":"NaN"}],"structuredContent":{"a":[-Infinity,Infinity]}}"#, "NaN"),
];

#[tokio::test]
async fn half_surrogates_and_numbers_that_json_does_not_have_are_repaired_over_every_transport() {
    for (result, wanted) in ODD {
        let script = move |method: &str, asked: &Value, _| {
            (method == "tools/call")
                .then(|| vec![format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, asked["id"])])
        };
        for over in ["streams", "json", "events"] {
            let builder = match over {
                "streams" => over_streams(script),
                over => Client::builder("s", Http::new(over_http(over == "events", "", script).await)).prefix(""),
            };
            let client = builder.build().expect("builds");
            let output = call(&client, "echo", json!({})).await.unwrap_or_else(|e| panic!("{over}: {result}: {e}"));
            assert_eq!(output.to_text(), *wanted, "{over}: {result}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_repaired_ends_its_call_at_once_with_the_reason() {
    let script = |method: &str, asked: &Value, _| {
        (method == "tools/call")
            .then(|| vec![format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[}}}}"#, asked["id"])])
    };
    for over in ["streams", "json", "events"] {
        let builder = match over {
            "streams" => over_streams(script),
            over => Client::builder("s", Http::new(over_http(over == "events", "", script).await)).prefix(""),
        };
        // Longer than the test is let run: the call must not wait for it.
        let client = builder.timeout(Duration::from_secs(3600)).build().expect("builds");
        let error = call(&client, "echo", json!({})).await.expect_err("is no answer");
        assert!(error.message().contains("not a message of the protocol"), "{over}: {error}");
    }
}

#[tokio::test]
async fn one_tool_with_a_bad_schema_disables_no_other_and_forms_of_older_drafts_are_converted() {
    let schemas = [
        json!(null),
        json!([]),
        json!({"type": "object", "properties": null, "required": null}),
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "exclusiveMinimum": true}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"t": {"items": [{"type": "string"}]}}}),
    ];
    let list = move |method: &str, asked: &Value, _| {
        let mut tools: Vec<_> = schemas
            .iter()
            .enumerate()
            .map(|(n, schema)| json!({"name": format!("t{n}"), "inputSchema": schema}))
            .collect();
        tools.push(json!({"name": "none"}));
        tools.push(json!({"name": "good", "inputSchema": {"type": "object"}}));
        (method == "tools/list")
            .then(|| vec![json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": tools}}).to_string()])
    };
    let client = over_streams(list).build().expect("builds");
    assert_eq!(names(&client).await, ["t0", "t1", "t2", "t3", "t4", "none", "good"]);
    let parameters = tool(&client, "t4").await.spec().parameters;
    assert_eq!(parameters, json!({"type": "object", "properties": {"t": {"prefixItems": [{"type": "string"}]}}}));
}

#[tokio::test]
async fn redirects_that_repeat_the_request_at_the_same_origin_are_followed_and_others_are_refused_with_their_address() {
    for (redirect, reaches) in [
        ("307 Temporary Redirect\r\nlocation: /mcp", true),
        ("308 Permanent Redirect\r\nlocation: {origin}/mcp", true),
        ("307 Temporary Redirect\r\nlocation: http://other.invalid:9/mcp?key=hush", false),
        ("302 Found\r\nlocation: /mcp", false),
    ] {
        let url = over_http(false, redirect, |_, _, _| None).await.replace("/mcp", "/from");
        let client = Client::builder("s", Http::new(url)).prefix("").build().expect("builds");
        match client.offered().await {
            Ok(tools) => assert!(reaches && tools.len() == 1, "{redirect}"),
            Err(error) => {
                assert!(!reaches && error.message().contains("redirects to http://"), "{redirect}: {error}");
                assert!(!error.message().contains("hush"), "{error}");
            }
        }
    }
}

fn list(names: &[&str], id: &Value, description: &str) -> String {
    let tools: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "description": description, "inputSchema": {"type": "object"}}))
        .collect();
    json!({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}}).to_string()
}

fn changed() -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).to_string()
}

/// The warnings of a run from now on.
fn warnings(run: &agent_core::engine::RunDriver) -> Arc<Mutex<Vec<String>>> {
    let told = Arc::<Mutex<Vec<String>>>::default();
    let notes = told.clone();
    run.cx().attach(Arc::new(move |event: &Event| {
        if let EventKind::Warning { message } = &event.kind {
            notes.lock().expect("free").push(message.clone());
        }
    }));
    told
}

#[tokio::test]
async fn known_tools_keep_their_place_when_a_list_changes_and_a_changed_tool_is_a_warning() {
    let script = |method: &str, asked: &Value, nth| match (method, nth) {
        ("tools/list", 1) => Some(vec![list(&["b", "c"], &asked["id"], "old")]),
        ("tools/list", 2) => Some(vec![list(&["a", "c", "b"], &asked["id"], "old")]),
        ("tools/list", _) => Some(vec![list(&["a", "c", "b"], &asked["id"], "new")]),
        ("tools/call", _) => Some(vec![changed(), usual(method, &asked["id"])]),
        _ => None,
    };
    let client = over_streams(script).build().expect("builds");
    let run = run(|_| {});
    let told = warnings(&run);
    assert_eq!(names(&client).await, ["b", "c"]);
    call_in(run.cx(), &client, "b", json!({})).await.expect("answers");
    assert_eq!(names(&client).await, ["b", "c", "a"]);
    assert!(told.lock().expect("free").is_empty());
    call_in(run.cx(), &client, "b", json!({})).await.expect("answers");
    client.tools(run.cx()).await.expect("are there");
    let told = told.lock().expect("free");
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("the tool 'b' of the MCP server 's' has changed"), "{told:?}");
}

#[tokio::test]
async fn a_tool_with_another_digest_than_its_pinned_one_is_left_out() {
    let script = |method: &str, asked: &Value, _| {
        (method == "tools/list").then(|| vec![list(&["a", "b", "c"], &asked["id"], "x")])
    };
    let digests = over_streams(script).build().expect("builds").digests().await.expect("are there");
    assert_eq!(digests.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    let client = over_streams(script).pin("a", &digests["a"]).pin("b", &digests["c"]).build().expect("builds");
    let run = run(|_| {});
    let told = warnings(&run);
    let tools = client.tools(run.cx()).await.expect("are there");
    assert_eq!(tools.iter().map(|tool| tool.spec().name).collect::<Vec<_>>(), ["a"]);
    assert_eq!(told.lock().expect("free").len(), 2);
}

#[tokio::test]
async fn what_a_server_says_of_its_tools_makes_them_riskier_and_not_safer_unless_it_is_trusted() {
    let script = |method: &str, asked: &Value, _| {
        let of = |name: &str, annotations: Value| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations});
        let tools = [
            of("safe", json!({"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false})),
            of("risky", json!({"destructiveHint": true, "openWorldHint": true})),
        ];
        (method == "tools/list")
            .then(|| vec![json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": tools}}).to_string()])
    };
    for (trusts, effect, safe) in [(false, Effect::AtMostOnce, None), (true, Effect::Pure, Some(false))] {
        let builder = over_streams(script);
        let client = if trusts { builder.trust_hints() } else { builder }.build().expect("builds");
        let options = tool(&client, "safe").await.options();
        assert_eq!((options.effect, options.hints.destructive, options.hints.open_world), (effect, safe, safe));
        let hints = tool(&client, "risky").await.options().hints;
        assert_eq!((hints.destructive, hints.open_world), (Some(true), Some(true)));
    }
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_time_of_a_call_up_to_ten_times() {
    let reports = Arc::new(AtomicUsize::new(0));
    let wanted = reports.clone();
    let script = move |method: &str, asked: &Value, _| {
        (method == "tools/call").then(|| {
            let token = &asked["params"]["_meta"]["progressToken"];
            let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
            let pieces = (0..wanted.load(Ordering::SeqCst)).flat_map(|_| ["wait 2".to_owned(), report.to_string()]);
            pieces.chain(["wait 2".to_owned(), usual(method, &asked["id"])]).collect()
        })
    };
    let client = over_streams(script).timeout(Duration::from_secs(3)).build().expect("builds");
    for (count, arrives) in [(5, true), (13, true), (20, false)] {
        reports.store(count, Ordering::SeqCst);
        let answer = call(&client, "echo", json!({})).await;
        assert_eq!(answer.is_ok(), arrives, "{count}: {answer:?}");
    }
}

#[tokio::test]
async fn each_run_is_warned_once_of_a_server_that_cannot_be_reached() {
    let client = Client::builder("gone", agent_tools::Stdio::new("no-such-program-here")).build().expect("builds");
    for _ in 0..2 {
        let run = run(|_| {});
        let told = warnings(&run);
        for _ in 0..3 {
            let tools = client.tools(run.cx()).await.expect("goes on");
            let [stand_in] = &tools.iter().map(|tool| tool.spec()).collect::<Vec<_>>()[..] else { panic!("one tool") };
            assert_eq!(stand_in.name, "connect_gone");
            assert!(stand_in.description.contains("no-such-program-here"), "{}", stand_in.description);
        }
        let told = told.lock().expect("free");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("no-such-program-here") && told[0].contains("Its tools are left out"), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_can_connect_a_server_that_could_not_be_reached() {
    let is_up = Arc::new(AtomicUsize::new(0));
    let up = is_up.clone();
    let script = move |method: &str, asked: &Value, _| {
        let refused = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32000, "message": "not yet"}});
        (method == "initialize" && up.load(Ordering::SeqCst) == 0).then(|| vec![refused.to_string()])
    };
    let client = over_streams(script).build().expect("builds");
    let run = run(|_| {});
    let stand_in = client.tools(run.cx()).await.expect("goes on").remove(0);
    assert!(stand_in.spec().name.starts_with("connect_") && stand_in.spec().description.contains("not yet"));
    is_up.store(1, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(60)).await;
    let said = crate::support::call(&*stand_in, json!({})).await.expect("connects").to_text();
    assert!(said.contains("is connected") && said.contains("echo"), "{said}");
    let names: Vec<_> = client.tools(run.cx()).await.expect("tools").iter().map(|tool| tool.spec().name).collect();
    assert!(
        names.iter().any(|name| name.ends_with("echo")) && !names.iter().any(|name| name.starts_with("connect_")),
        "{names:?}"
    );
}

/// A server with a tool that takes numbers; its answers quote the line of the call.
fn counts(method: &str, asked: &Value, _: usize) -> Option<Vec<String>> {
    let (id, line) = (&asked["id"], &asked["line"]);
    match method {
        "tools/list" => {
            let properties =
                json!({"id": {"type": "integer"}, "share": {"type": "number"}, "note": {"type": "string"}});
            let tools = json!([{"name": "pay", "inputSchema": {"type": "object", "properties": properties}}]);
            Some(vec![json!({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}}).to_string()])
        }
        "tools/call" => Some(vec![format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{line}}}],"structuredContent":{{"id":98765432109876543210987,"n":0.5}}}}}}"#
        )]),
        _ => None,
    }
}

#[tokio::test]
async fn a_number_of_more_than_64_bits_reaches_the_server_and_comes_back_with_every_digit() {
    let over_json = Client::builder("s", Http::new(over_http(false, "", counts).await)).prefix("");
    let over_events = Client::builder("s", Http::new(over_http(true, "", counts).await)).prefix("");
    for builder in [over_streams(counts), over_json, over_events] {
        let client = builder.build().expect("builds");
        let args =
            json!({"id": "12345678901234567890123", "share": "0.12345678901234567890", "note": "12345678901234567890"});
        let output = call(&client, "pay", args).await.expect("is paid");
        let written = output.to_text();
        for part in
            [r#""id":12345678901234567890123"#, r#""share":0.12345678901234567890"#, r#""note":"12345678901234567890""#]
        {
            assert!(written.contains(part), "{part}: {written}");
        }
        assert_eq!(output.as_value(), Some(&json!({"id": "98765432109876543210987", "n": 0.5})));
    }
}
