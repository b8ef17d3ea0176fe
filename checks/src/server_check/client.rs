//! Client of the Runs API that drops connections at will.

use std::io;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

/// Stream of a run's events, as bytes.
pub(super) struct Stream(TcpStream);

/// State of a viewer of a run, across connections.
#[derive(Debug, Default)]
pub(super) struct Viewer {
    /// Ids of the events, in order of arrival.
    pub(super) ids: Vec<(u64, u32)>,
    /// Run in the stream's last frame, once it is suspended or has ended.
    pub(super) rests: Option<Value>,
    rest: Vec<u8>,
}

/// Sends a request on a new connection.
async fn send(address: &str, method: &str, path: &str, headers: &str, body: &str) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    // A small buffer, so that a client that does not read holds little data.
    socket.set_recv_buffer_size(1 << 14)?;
    let address = address.parse().map_err(io::Error::other)?;
    let mut stream = socket.connect(address).await?;
    let length = body.len();
    // HTTP/1.0 avoids chunked encoding.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Sends a request; returns the status and the JSON of the response.
pub(super) async fn ask(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> io::Result<(u16, Value)> {
    let mut stream = send(address, method, path, headers, body).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("this is no answer: {text}")))?;
    let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body).unwrap_or_default());
    Ok((status, body.unwrap_or_default()))
}

/// Starts a run of an agent with this input, and returns its id. The same key gives the same run.
pub(super) async fn start(address: &str, agent: &str, input: &str, key: &str) -> io::Result<String> {
    let body = json!({"input": input}).to_string();
    let path = format!("/api/agents/{agent}/runs");
    let (_, run) = ask(address, "POST", &path, &format!("idempotency-key: {key}\r\n"), &body).await?;
    run["run"].as_str().map(str::to_owned).ok_or_else(|| io::Error::other(format!("no run began: {run}")))
}

/// Starts a run and streams it from its beginning.
pub(super) async fn run(address: &str, agent: &str, input: &str) -> io::Result<Stream> {
    let body = json!({"input": input}).to_string();
    let path = format!("/api/agents/{agent}/runs");
    Ok(Stream(send(address, "POST", &path, "accept: text/event-stream\r\n", &body).await?))
}

/// Opens any stream at a path.
pub(super) async fn get(address: &str, path: &str) -> io::Result<Stream> {
    Ok(Stream(send(address, "GET", path, "", "").await?))
}

impl Stream {
    /// Reads at most `most` bytes; empty at the end.
    pub(super) async fn read(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; most.clamp(1, 1 << 16)];
        let read = self.0.read(&mut piece).await?;
        piece.truncate(read);
        Ok(piece)
    }
}

impl Viewer {
    /// Resumes viewing at the last event.
    pub(super) async fn connect(&mut self, address: &str, run: &str) -> io::Result<Stream> {
        self.rest.clear();
        self.rests = None;
        let last = self.ids.last().map(|(seq, after)| format!("last-event-id: {seq}.{after}\r\n")).unwrap_or_default();
        Ok(Stream(send(address, "GET", &format!("/api/runs/{run}/events"), &last, "").await?))
    }

    /// Views until the stream ends.
    pub(super) async fn view(&mut self, address: &str, run: &str) -> io::Result<()> {
        let stream = self.connect(address, run).await?;
        self.read(stream).await
    }

    /// Processes the rest of a stream.
    pub(super) async fn read(&mut self, mut stream: Stream) -> io::Result<()> {
        loop {
            let piece = stream.read(1 << 16).await?;
            if piece.is_empty() {
                return Ok(());
            }
            self.take(&piece);
        }
    }

    /// Processes received bytes. An incomplete frame is buffered for the next piece, and lost with
    /// the connection.
    pub(super) fn take(&mut self, piece: &[u8]) {
        // The buffer contains no delimiter, but may end with the first half of one.
        let (mut from, mut taken) = (self.rest.len().saturating_sub(1), 0);
        self.rest.extend_from_slice(piece);
        while let Some(end) = self.rest[from..].windows(2).position(|two| two == b"\n\n") {
            let frame = String::from_utf8_lossy(&self.rest[taken..from + end]).into_owned();
            from += end + 2;
            taken = from;
            self.frame(&frame);
        }
        self.rest.drain(..taken);
    }

    fn frame(&mut self, frame: &str) {
        let field = |name| frame.lines().find_map(|line| line.strip_prefix(name));
        if field("event: ") == Some("end") {
            self.rests = field("data: ").and_then(|data| serde_json::from_str(data).ok());
        } else if let Some((seq, after)) = field("id: ").and_then(|id| id.split_once('.'))
            && let (Ok(seq), Ok(after)) = (seq.parse(), after.parse())
        {
            self.ids.push((seq, after));
        }
    }

    /// Returns true if the run has ended.
    pub(super) fn is_over(&self) -> bool {
        self.rests.as_ref().is_some_and(|run| run["status"] == "finished")
    }

    /// Returns true if the events are in order, and all durable ones equal those of `all`.
    pub(super) fn agrees(&self, all: &Self) -> bool {
        let kept = |viewer: &Self| viewer.ids.iter().filter(|(_, after)| *after == 0).copied().collect::<Vec<_>>();
        self.is_over() && self.ids.is_sorted_by(|one, two| one < two) && kept(self) == kept(all)
    }
}

/// Views a run completely, from its beginning.
pub(super) async fn whole(address: &str, run: &str) -> io::Result<Viewer> {
    let mut viewer = Viewer::default();
    viewer.view(address, run).await?;
    Ok(viewer)
}
