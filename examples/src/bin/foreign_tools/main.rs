//! Tools written in Python for LangChain, and in JavaScript, used by an agent as MCP servers.
//!
//! ```sh
//! python3 -m venv target/mcp && target/mcp/bin/pip install mcp langchain-core
//! npm install --prefix target/mcp @modelcontextprotocol/sdk
//! cargo run --bin foreign_tools -- --python target/mcp/bin/python --node-modules target/mcp/node_modules
//! ```
//!
//! Servers that are not installed are skipped, with a message.

use std::path::{Path, PathBuf};

use agent::{
    core::Toolset,
    prelude::*,
    testing::{ScriptedModel, Turn},
    tools::mcp::{Client, Stdio},
};
use clap::Parser;
use serde_json::{Value, json};

/// Calls tools in Python and JavaScript.
#[derive(Parser)]
struct Args {
    /// A Python in which the packages `mcp` and `langchain-core` are installed.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// A directory `node_modules` in which `@modelcontextprotocol/sdk` is installed.
    #[arg(long, default_value = "node_modules")]
    node_modules: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/foreign_tools");
    let file = |name: &str| here.join(name).display().to_string();

    let python = Stdio::new(args.python.display().to_string()).arg(file("langchain_tools.py"));
    call("langchain", python, "word_count", json!({"text": "to be or not to be"})).await?;

    let modules = std::path::absolute(&args.node_modules).unwrap_or(args.node_modules);
    let node = Stdio::new("node").arg(file("typescript_tools.cjs")).env("NODE_PATH", modules.display().to_string());
    call("typescript", node, "reverse", json!({"text": "stressed"})).await
}

/// Runs an agent with the server's tools, and calls one.
async fn call(server: &str, program: Stdio, tool: &str, args: Value) -> Result<()> {
    let client = Client::builder(server, program).required().build()?;
    if let Err(error) = client.warm_up().await {
        println!("{server}: skipped, since its packages are not installed ({})", error.message());
        return Ok(());
    }
    // A real model chooses the tool itself.
    let model =
        ScriptedModel::new([Turn::calls([("1", format!("{server}_{tool}").as_str(), args)]), Turn::text("Done.")]);
    let agent = Agent::builder("caller", model.clone()).toolset(client.clone()).build()?;
    agent.run("Do it.").await?;
    println!("{server}: {tool} gave {}", model.requests()[1].results()[0].1);
    client.close().await
}
