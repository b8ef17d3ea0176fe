//! Hostile connections and requests, beside a run that must not lose anything.

use std::{io, time::Duration};

use agent::core::BoxError;
use futures::future::{join_all, try_join_all};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{
    child::{Served, What},
    client::{self, Viewer},
    talker,
};

/// Number of connections opened concurrently.
const AT_ONCE: usize = 100;
/// Maximum time until the server closes a slow connection.
const RID: Duration = Duration::from_secs(60);
/// Beginning of a request with a body.
const POST: &str = "POST /api/agents/talker/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

/// Returns true if each request got its expected status, every slow connection was closed, and the
/// run beside them was complete.
pub(super) async fn check(connections: usize) -> Result<bool, BoxError> {
    let served = Served::begin(What::Agent, None, 0).await?;
    let address = &*served.address;
    let run = client::start(address, talker::NAME, "1000", "beside").await?;
    let beside = async {
        let mut viewer = Viewer::default();
        viewer.view(address, &run).await.map(|()| viewer)
    };
    let (viewer, abused) = tokio::join!(beside, abuse(address, connections));
    let (ended, wrong) = abused?;
    let is_whole = viewer?.agrees(&client::whole(address, &run).await?);
    println!(
        "abused: {ended} of {connections} slow connections were ended, {wrong} requests got another status, the run beside them {}",
        if is_whole { "is whole" } else { "IS NOT WHOLE" }
    );
    Ok(ended == connections && wrong == 0 && is_whole)
}

async fn abuse(address: &str, connections: usize) -> io::Result<(usize, usize)> {
    let mut slow = Vec::with_capacity(connections);
    while slow.len() < connections {
        let most = AT_ONCE.min(connections - slow.len());
        // Half of them send their heads slowly, half their bodies.
        let begun = (0..most).map(|n| begin(address, if n % 2 == 0 { "GET /heal" } else { BODY_THAT_STOPS }));
        slow.extend(try_join_all(begun).await?);
    }
    let wrong = statuses(address).await?;
    let ended = join_all(slow.into_iter().map(|stream| timeout(RID, said(stream)))).await;
    Ok((ended.iter().filter(|ended| ended.is_ok()).count(), wrong))
}

const BODY_THAT_STOPS: &str = "POST /api/agents/talker/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"input\": ";

/// Counts the requests with an unexpected status while the slow connections were open.
async fn statuses(address: &str) -> io::Result<usize> {
    let many: String = (0..500).map(|n| format!("x-{n}: y\r\n")).collect();
    let deep = format!("{{\"input\": {}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
    let mut wrong = 0;
    for (request, status) in [
        ("GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(), 200),
        (format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"), 431),
        (format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(200_000)), 431),
        ("GET /health HTTP/1.1\r\nhost: localhost\r\nno colon\r\n\r\n".to_owned(), 400),
        (format!("{POST}connection: close\r\ncontent-length: 90000000\r\n\r\n"), 413),
        (format!("{POST}connection: close\r\ncontent-length: {}\r\n\r\n{deep}", deep.len()), 400),
    ] {
        let answer = said(begin(address, &request).await?).await;
        // A client that sends more than the server reads may find the connection closed before the
        // response.
        let is_cut = answer.is_empty() && request.len() > 100_000;
        if !is_cut && !answer.starts_with(&format!("HTTP/1.1 {status} ")) {
            eprintln!("{status} was to come, and came: {answer}");
            wrong += 1;
        }
    }
    Ok(wrong)
}

async fn begin(address: &str, bytes: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    // The server may close the connection during the write.
    let _ = stream.write_all(bytes.as_bytes()).await;
    Ok(stream)
}

/// Reads everything until the server closes the connection.
async fn said(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}
