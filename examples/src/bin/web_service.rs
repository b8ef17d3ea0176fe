//! Conversations over HTTP: an agent in axum whose sessions outlive the process.
//!
//! `curl localhost:3000/chats/ada/garden -d 'What hums?'` sends a message to Ada's chat `garden`;
//! the same address without `-d` reads the chat.

use std::net::SocketAddr;

use agent::{SessionId, SqliteJournal, WhenBusy, core::MemoryJournal, prelude::*, shutdown_signal, testing::Turn};
use agent_examples::models::ModelArgs;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Path, State},
    http::{Request, StatusCode},
    routing::get,
};
use clap::Parser;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::net::TcpListener;

/// Serves an agent over HTTP.
#[derive(Parser, Debug)]
struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
    /// Journal file.
    #[arg(long, default_value = "chats.db")]
    journal: std::path::PathBuf,
    /// Listen on any port, make some requests, and exit.
    #[arg(long)]
    demo: bool,
    #[command(flatten)]
    model: ModelArgs,
}

/// Response to a request: a text, or a status with the reason.
type Answer = Result<String, (StatusCode, String)>;

fn refused(e: &Error) -> (StatusCode, String) {
    let status = match e.kind() {
        ErrorKind::Busy => StatusCode::CONFLICT,
        ErrorKind::RateLimited | ErrorKind::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, e.message().to_owned())
}

/// In production, the user comes from your authentication. A session belongs to one user.
async fn say(State(agent): State<Agent>, Path((user, chat)): Path<(String, String)>, text: String) -> Answer {
    let request = RunRequest::user(text).session(SessionId::new(&user, chat)).on_behalf_of(user);
    match agent.start(request).await.map_err(|e| refused(&e))? {
        RunEnd::Finished(end) => Ok(end.answer + "\n"),
        other => Err((StatusCode::ACCEPTED, format!("the run was {}", other.as_str()))),
    }
}

async fn read(State(agent): State<Agent>, Path((user, chat)): Path<(String, String)>) -> Answer {
    let session = agent.sessions().map_err(|e| refused(&e))?.session(&SessionId::new(user, chat), agent.name());
    let history = session.history().await.map_err(|e| refused(&e))?;
    Ok(history.iter().map(|message| format!("{}: {}\n", message.role(), message.text())).collect())
}

/// Simulates a user: sends two messages, reads the chat, and tries to read another user's chat.
async fn demo(address: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    for (path, said) in [("ada", Some("I am Ada.")), ("ada", Some("Who am I?")), ("ada", None), ("bob", None)] {
        let request = Request::builder().uri(format!("http://{address}/chats/{path}/garden"));
        let request = request.method(if said.is_some() { "POST" } else { "GET" }).body(said.unwrap_or("").into())?;
        let answer = client.request(request).await?;
        println!("{path} {said:?}: {}", answer.status());
        print!("{}", String::from_utf8(to_bytes(Body::new(answer.into_body()), 1 << 16).await?.into())?);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let agent = match args.demo {
        true => {
            Agent::builder("assistant", args.model.or_script(["Hello Ada.", "You are Ada."].map(Turn::text)).await?)
                .store(MemoryJournal::default())
        }
        false => Agent::builder("assistant", args.model.or_offline().await?).store(SqliteJournal::open(args.journal)?),
    };
    // A message to a busy chat waits for the end of the run; the ninth in the queue is rejected.
    let agent = agent.when_busy(WhenBusy::Queue { limit: 8 }).build()?;

    let service = Router::new().route("/chats/{user}/{chat}", get(read).post(say)).with_state(agent);
    let listener = TcpListener::bind(if args.demo { ([127, 0, 0, 1], 0).into() } else { args.listen }).await?;
    let address = listener.local_addr()?;
    println!("Listening on http://{address}.");
    let server = axum::serve(listener, service);
    match args.demo {
        true => tokio::select! { ended = server.into_future() => Ok(ended?), done = demo(address) => done },
        false => Ok(server.with_graceful_shutdown(async { drop(shutdown_signal().await) }).await?),
    }
}
