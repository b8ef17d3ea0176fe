//! A support desk: customers write, an agent answers, and a person approves refunds in a browser.
//!
//! `cargo run -p support-desk`, then open the address that it prints.

mod desk;
mod orders;
mod page;
mod script;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use agent::{Agent, SqliteJournal, llm::model, shutdown_signal};
use agent_server::{Served, Server};
use clap::Parser;
use tokio::net::TcpListener;

use crate::{orders::Orders, script::Script};

/// Serves a support desk whose refunds a person approves.
#[derive(Parser, Debug)]
struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
    /// Journal file: conversations and open approvals survive a restart.
    #[arg(long, default_value = "support.db")]
    store: PathBuf,
    /// Model, such as `openai:gpt-5` or `ollama:llama3.2`. Default: a script that looks for order
    /// numbers.
    #[arg(long, env = "MODEL")]
    model: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let agent = if let Some(name) = &args.model {
        desk::build(model(name).build()?, Orders::sample())?
    } else {
        eprintln!("No model is connected (--model, or MODEL): a script answers.");
        desk::build(Script, Orders::sample())?
    };
    let server = server(agent, SqliteJournal::open(args.store)?)?;
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|e| format!("cannot listen on {}: {e}; choose another address with --listen", args.listen))?;
    println!("Open http://{} in a browser.", listener.local_addr()?);

    // Runs of an earlier process continue.
    let recovering = tokio::spawn({
        let server = server.clone();
        async move { server.recover().await }
    });
    let app = server.router().merge(page::router());
    let stopped = async move {
        drop(shutdown_signal().await);
        server.drain(Duration::from_secs(20)).await;
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
    recovering.abort();
    Ok(())
}

/// Creates the server of the agent.
fn server(agent: Agent, journal: SqliteJournal) -> agent::Result<Server> {
    let served = Served::new(agent).description("Helps the customers of a teapot shop.");
    Server::builder().agent(served).store(journal).build()
}
