//! Loopback server with scripted responses.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Response: bytes, possibly followed by an endless repetition of others.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) endless: Option<Vec<u8>>,
    /// True if the response never ends.
    pub(crate) hangs: bool,
}

/// Creates a response with these headers, each ending a line, and this body.
pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    Answer { bytes: [head.as_bytes(), body].concat(), ..Answer::default() }
}

pub(crate) fn page(content_type: &str, body: impl AsRef<[u8]>) -> Answer {
    answer("200 OK", &format!("content-type: {content_type}\r\n"), body)
}

pub(crate) fn redirect(to: &str) -> Answer {
    answer("302 Found", &format!("location: {to}\r\n"), "")
}

/// Loopback server that responds to requests by path, and records them.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (port, seen) = (listener.local_addr().expect("bound").port(), Arc::new(Mutex::new(Vec::new())));
        let (noted, answer) = (seen.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answer) = (noted.clone(), answer.clone());
                tokio::spawn(async move { serve(stream, &noted, &*answer).await });
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the recorded requests: heads with bodies.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }

    /// Returns the requested paths.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen().iter().map(|head| head.split(' ').nth(1).unwrap_or_default().to_owned()).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    noted: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str, &str) -> Answer + Send + Sync),
) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&head) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => head.extend_from_slice(&buffer[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    noted.lock().expect("no panic").push(head.clone());
    let Answer { bytes, endless, hangs } = answer(&path, &head);
    let _ = stream.write_all(&bytes).await;
    if let Some(again) = endless {
        while stream.write_all(&again).await.is_ok() {}
    }
    if hangs {
        std::future::pending::<()>().await;
    }
    let _ = stream.shutdown().await;
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}
