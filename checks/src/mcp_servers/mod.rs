//! Third-party MCP servers in Python, over standard input and output and over HTTP.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Command, Stdio as Pipe},
    time::Duration,
};

use agent::{
    core::{BoxError, History, ToolCall, ToolOutput, ToolRequest, Toolset, testing::detached_run},
    tools::mcp::{Client, ClientBuilder, Http, Stdio},
};
use serde_json::{Value, json};

/// Server of the package `mcp` over HTTP, with a tool that returns structured content and one that
/// fails.
const FAST: &str = include_str!("fast.py");

/// Uses real servers, of the packages `mcp-server-time`, `mcp-server-git` and `mcp` of PyPI: lists
/// their tools, calls them, and checks the errors for invalid arguments. Exits with 1 if a result
/// is unexpected.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Python interpreter in which the three packages are installed.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

/// Returns true if all servers work.
pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    let python = args.python.display().to_string();
    let builder = |name: &str, module: &[&str]| {
        let program = Stdio::new(python.clone()).arg("-m").args(module.iter().copied());
        Client::builder(name, program).required().build()
    };
    let time = builder("time", &["mcp_server_time", "--local-timezone", "Europe/Zurich"])?;
    let noon = json!({"source_timezone": "Europe/Zurich", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let told = call(&time, "time_convert_time", noon).await?;
    let mut holds = is("time converts", told.to_text().contains("Asia/Tokyo"));
    let wrong = call(&time, "time_get_current_time", json!({"timezone": "Moon/Crater"})).await?;
    holds &= is("time says what is wrong", wrong.is_error());
    time.close().await?;

    let repository = tempfile::tempdir()?;
    let place = repository.path().display().to_string();
    Command::new("git").args(["init", "--quiet", &place]).status()?;
    std::fs::write(repository.path().join("a.txt"), "a lion")?;
    let git = builder("git", &["mcp_server_git", "--repository", &place])?;
    let status = call(&git, "git_git_status", json!({"repo_path": place})).await?;
    holds &= is("git sees a file", status.to_text().contains("a.txt"));
    let elsewhere = call(&git, "git_git_status", json!({"repo_path": "/"})).await?;
    holds &= is("git stays where it is", elsewhere.is_error());
    git.close().await?;

    Ok(over_http(&python).await? && holds)
}

async fn over_http(python: &str) -> Result<bool, BoxError> {
    let script = tempfile::NamedTempFile::with_suffix(".py")?;
    std::fs::write(script.path(), FAST)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut server = Command::new(python);
    let server = server.arg(script.path()).arg(port.to_string()).stdout(Pipe::null()).stderr(Pipe::null());
    let mut server = server.spawn()?;
    let client: ClientBuilder = Client::builder("fast", Http::new(format!("http://127.0.0.1:{port}/mcp")));
    let client = client.build()?;
    for _ in 0..300 {
        if !client.offered().await.unwrap_or_default().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let looked = async {
        let sum = call(&client, "fast_add", json!({"a": 40, "b": 2})).await?;
        let mut holds = is("the package mcp gives a value", sum.as_value() == Some(&json!({"sum": 42})));
        let failed = call(&client, "fast_fail", json!({})).await?;
        holds &= is("the package mcp says that a tool failed", failed.is_error());
        client.close().await?;
        Ok::<_, BoxError>(holds)
    };
    let looked = looked.await;
    server.kill()?;
    server.wait()?;
    looked
}

fn is(what: &str, holds: bool) -> bool {
    println!("{what}: {}", if holds { "yes" } else { "NO" });
    holds
}

/// Calls the client's tool of this name.
async fn call(client: &Client, name: &str, args: Value) -> Result<ToolOutput, BoxError> {
    let tools = client.offered().await?;
    let tool = tools.iter().find(|tool| tool.spec().name == name).ok_or_else(|| format!("there is no tool {name}"))?;
    let run = detached_run(History::default());
    let call = ToolCall { id: "1".into(), name: name.into(), arguments: args.to_string(), raw: None };
    Ok(tool.call(ToolRequest::new(run.cx().clone(), call, args)).await?)
}
