//! A client of the Runs API, over connections that it drops as it likes.

use std::io;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A stream of a run's events, as bytes.
pub(super) struct Stream(TcpStream);

/// What a viewer has of a run: the ids of the events, in the order in which they came, whatever became of connections.
#[derive(Debug, Default)]
pub(super) struct Viewer {
    pub(super) ids: Vec<(u64, u32)>,
    pub(super) is_over: bool,
    rest: Vec<u8>,
}

/// Sends a request on a connection of its own.
async fn send(address: &str, method: &str, path: &str, headers: &str, body: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    // HTTP/1.0: the answer is in no chunks.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Starts a run that says so many pieces, and gives its id. With a key it may be asked again.
pub(super) async fn start(address: &str, pieces: &str, key: &str) -> io::Result<String> {
    let body = json!({"input": pieces}).to_string();
    let mut stream =
        send(address, "POST", "/api/agents/talker/runs", &format!("idempotency-key: {key}\r\n"), &body).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let json = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str::<Value>(body).ok());
    let id = json.as_ref().and_then(|json| json["run"].as_str());
    id.map(str::to_owned).ok_or_else(|| io::Error::other(format!("no run began: {text}")))
}

/// Anything that is streamed under a path.
pub(super) async fn get(address: &str, path: &str) -> io::Result<Stream> {
    Ok(Stream(send(address, "GET", path, "", "").await?))
}

impl Stream {
    /// A piece of at most so many bytes; nothing at the end.
    pub(super) async fn read(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; most.clamp(1, 1 << 16)];
        let read = self.0.read(&mut piece).await?;
        piece.truncate(read);
        Ok(piece)
    }
}

impl Viewer {
    /// Goes on viewing where it stopped.
    pub(super) async fn connect(&mut self, address: &str, run: &str) -> io::Result<Stream> {
        self.rest.clear();
        let last = self.ids.last().map(|(seq, after)| format!("last-event-id: {seq}.{after}\r\n")).unwrap_or_default();
        Ok(Stream(send(address, "GET", &format!("/api/runs/{run}/events"), &last, "").await?))
    }

    /// Takes what came. What is not whole yet is kept for the next piece, and lost with the connection.
    pub(super) fn take(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
            let frame: Vec<u8> = self.rest.drain(..end + 2).collect();
            let frame = String::from_utf8_lossy(&frame);
            self.is_over |= frame.contains("event: end\n");
            let id = frame.lines().find_map(|line| line.strip_prefix("id: "));
            let id = id
                .and_then(|id| id.split_once('.'))
                .and_then(|(seq, after)| Some((seq.parse().ok()?, after.parse().ok()?)));
            // The frame of the end has the id of the last event.
            if let Some(id) = id.filter(|_| !frame.contains("event: end\n")) {
                self.ids.push(id);
            }
        }
    }

    /// True if every event came after the one before, and all that the journal has are those of `all`.
    pub(super) fn agrees(&self, all: &Self) -> bool {
        let kept = |viewer: &Self| viewer.ids.iter().filter(|(_, after)| *after == 0).copied().collect::<Vec<_>>();
        self.is_over && self.ids.is_sorted_by(|one, two| one < two) && kept(self) == kept(all)
    }
}

/// All of a run, from its beginning.
pub(super) async fn whole(address: &str, run: &str) -> io::Result<Viewer> {
    let mut viewer = Viewer::default();
    let mut stream = viewer.connect(address, run).await?;
    loop {
        let piece = stream.read(1 << 16).await?;
        if piece.is_empty() {
            return Ok(viewer);
        }
        viewer.take(&piece);
    }
}
