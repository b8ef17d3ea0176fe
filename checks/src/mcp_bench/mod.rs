//! Cost of an MCP tool call through the client, relative to the bare library.

use std::time::{Duration, Instant};

use agent::{
    core::{BoxError, History, ToolCall, ToolRequest, Toolset, testing::detached_run},
    tools::{
        from_schema,
        mcp::{Client, Server, Stdio},
    },
};
use rmcp::{ServiceExt, model::CallToolRequestParams};
use serde_json::{Value, json};
use tokio::process::Command;

/// Measures calls of a tool that responds immediately, on a server in another process, over
/// standard input and output: alternately through the framework's client and through the underlying
/// library. Exits with 1 if the client exceeds the bar.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of calls per batch.
    #[arg(long, default_value_t = 2000)]
    calls: u32,
    /// Number of batches of each kind; the best one counts.
    #[arg(long, default_value_t = 9)]
    batches: u32,
    /// Maximum duration of a call, as a multiple of the bare library's.
    #[arg(long, default_value_t = 1.3)]
    bar: f64,
    /// Internal: run as the server.
    #[arg(long, hide = true)]
    serve: bool,
}

/// Returns true if the bar holds.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    if args.serve {
        let text = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let echo = from_schema("echo", "Says it again.", text, async |args: Value, _: ToolRequest| {
            args["text"].as_str().unwrap_or_default().to_owned()
        });
        Server::builder("bench").tool(echo).build()?.serve_stdio().await?;
        return Ok(true);
    }
    let itself = std::env::current_exe()?.display().to_string();
    let client =
        Client::builder("bench", Stdio::new(itself.clone()).args(["mcp-bench", "--serve"])).required().build()?;
    let tool = client.offered().await?.into_iter().next().ok_or("the server has no tool")?;
    let mut program = Command::new(itself);
    program.args(["mcp-bench", "--serve"]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut program = program.kill_on_drop(true).spawn()?;
    let streams = program.stdout.take().zip(program.stdin.take()).ok_or("the server has no streams")?;
    let bare = ().serve(streams).await?;

    let run = detached_run(History::default());
    let params = json!({"text": "hello"});
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for _ in 0..args.batches {
        let begin = Instant::now();
        for _ in 0..args.calls {
            let mut call = CallToolRequestParams::new("echo");
            call.arguments = params.as_object().cloned();
            bare.call_tool(call).await?;
        }
        theirs = theirs.min(begin.elapsed());
        let begin = Instant::now();
        for _ in 0..args.calls {
            let call = ToolCall { id: "1".into(), name: "bench_echo".into(), arguments: params.to_string(), raw: None };
            tool.call(ToolRequest::new(run.cx().clone(), call, params.clone())).await?;
        }
        ours = ours.min(begin.elapsed());
    }
    client.close().await?;
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("a call through the client: {:>8.1} us", ours.as_secs_f64() * 1e6 / f64::from(args.calls));
    println!("a call of the bare library: {:>7.1} us", theirs.as_secs_f64() * 1e6 / f64::from(args.calls));
    println!("{ratio:.2} times as long; the bar is {}", args.bar);
    Ok(ratio <= args.bar)
}
