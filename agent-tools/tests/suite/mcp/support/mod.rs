//! Helpers shared by the tests.

pub(crate) mod double;
pub(crate) mod scripted;
pub(crate) mod wild;

use std::sync::{Arc, Mutex};

use agent_core::{
    Event, EventKind, History, Result, RunCx, RunIds, Tool, ToolCall, ToolOutput, ToolRequest, Toolset,
    engine::{RunDriver, RunParts},
    testing::detached_run_as,
};
use agent_tools::mcp::Client;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// Creates a run; `change` adjusts its parts.
pub(crate) fn run(change: impl FnOnce(&mut RunParts)) -> RunDriver {
    run_as(RunIds::root("test", "test"), change)
}

/// Creates another run with these ids.
pub(crate) fn run_as(ids: RunIds, change: impl FnOnce(&mut RunParts)) -> RunDriver {
    let detached = detached_run_as(ids, History::default());
    let cx = detached.cx();
    let mut parts =
        RunParts::new(cx.ids().clone(), detached.engine().emitter().clone(), detached.engine().log().clone());
    change(&mut parts);
    RunDriver::new(parts)
}

/// Returns the client's tool of this name.
pub(crate) async fn tool(client: &Client, name: &str) -> Arc<dyn Tool> {
    let run = run(|_| {});
    let tools = client.tools(run.cx()).await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name).collect();
    tools.into_iter().find(|tool| tool.spec().name == name).unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

pub(crate) fn request(cx: &RunCx, tool: &dyn Tool, args: Value) -> ToolRequest {
    let call = ToolCall { id: "c1".into(), name: tool.spec().name.into(), arguments: args.to_string(), raw: None };
    ToolRequest::new(cx.clone(), call, args)
}

/// Calls the client's tool of this name in the run.
pub(crate) async fn call_in(cx: &RunCx, client: &Client, name: &str, args: Value) -> Result<ToolOutput> {
    let tool = tool(client, name).await;
    tool.call(request(cx, &*tool, args)).await
}

pub(crate) async fn call(client: &Client, name: &str, args: Value) -> Result<ToolOutput> {
    call_in(run(|_| {}).cx(), client, name, args).await
}

/// Returns the names of the client's tools.
pub(crate) async fn names(client: &Client) -> Vec<String> {
    let run = run(|_| {});
    client.tools(run.cx()).await.expect("tools").iter().map(|tool| tool.spec().name).collect()
}

/// Records the progress events of tools in the run.
pub(crate) fn progress(cx: &RunCx) -> Arc<Mutex<Vec<Value>>> {
    let told = Arc::<Mutex<Vec<Value>>>::default();
    let notes = told.clone();
    cx.attach(Arc::new(move |event: &Event| {
        if let EventKind::ToolProgress { progress, .. } = &event.kind {
            notes.lock().expect("free").push(progress.clone());
        }
    }));
    told
}

/// Returns the head and the body of the response to a plain request.
pub(crate) async fn get(host: &str, path: &str) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(host).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Reads the head of a request, in lower case except for its first line, and its body.
pub(crate) async fn read(stream: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).await? > 0 {}
    let length =
        head.to_lowercase().split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    reader.read_exact(&mut body).await?;
    Ok((head, body))
}

/// Lets all running tasks proceed until `done` holds.
pub(crate) async fn until(done: impl Fn() -> bool) {
    for _ in 0..1000 {
        if done() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it never happened");
}
