//! A server that writes HTTP/2 frame by frame, including frames that no library sends.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PROMISE: u8 = 5;
const GOODBYE: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const REFUSED_STREAM: u32 = 7;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of a response with status 200.
pub(crate) fn head(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("a short text")], text.as_bytes()].concat();
    let field = |(name, value): &(&str, &str)| [vec![0], text(name), text(value)].concat();
    let status = vec![0x88]; // entry 8 of HPACK's static table
    let fields: Vec<u8> = [status].into_iter().chain(fields.iter().map(field)).flatten().collect();
    frame(HEADERS, END_HEADERS, stream, &fields)
}

pub(crate) fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, bytes)
}

/// The last bytes of a response.
pub(crate) fn end(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, bytes)
}

/// A whole response.
pub(crate) fn whole(stream: u32, body: &[u8]) -> Vec<u8> {
    [head(stream, &[]), end(stream, body)].concat()
}

/// A refusal of this stream's request, unprocessed.
pub(crate) fn refusal(stream: u32) -> Vec<u8> {
    frame(RESET, 0, stream, &REFUSED_STREAM.to_be_bytes())
}

/// An endless sequence of header fragments.
pub(crate) fn endless_head(stream: u32) -> Vec<u8> {
    let field = [&[0, 6][..], b"x-more", &[0x7f, 0x81, 0x07], &[b'a'; 1_024]].concat();
    let begin = frame(HEADERS, 0, stream, &[&[0x88], &field[..]].concat());
    [begin, frame(CONTINUATION, 0, stream, &field).repeat(2_000)].concat()
}

/// A push promise: the server's own request on the stream `promised`.
pub(crate) fn promise(stream: u32, promised: u32) -> Vec<u8> {
    let get = [0x82, 0x86, 0x84, 0x41, 1, b'h']; // GET http://h/
    frame(PROMISE, END_HEADERS, stream, &[&promised.to_be_bytes()[..], &get].concat())
}

/// A GOAWAY frame: streams after `last` are not processed.
pub(crate) fn goodbye(last: u32) -> Vec<u8> {
    frame(GOODBYE, 0, 0, &[last.to_be_bytes(), 0_u32.to_be_bytes()].concat())
}

/// A client's connection.
pub(crate) struct Frames(TcpStream);

impl Frames {
    pub(crate) async fn accept(listener: &TcpListener) -> Self {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.expect("a preface");
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("writes");
        Self(stream)
    }

    /// Returns the stream of the next complete request.
    pub(crate) async fn request(&mut self) -> u32 {
        self.next().await.expect("a request")
    }

    /// As [`request`](Self::request); an error once the client has disconnected.
    pub(crate) async fn next(&mut self) -> io::Result<u32> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await?;
            let [a, b, c, kind, flags, d, e, f, g] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.0.read_exact(&mut payload).await?;
            if [DATA, HEADERS].contains(&kind) && flags & END_STREAM != 0 {
                return Ok(u32::from_be_bytes([d, e, f, g]));
            }
        }
    }

    pub(crate) async fn send(&mut self, frames: &[u8]) {
        self.0.write_all(frames).await.expect("writes");
    }

    /// Sends frames that the client may stop reading.
    pub(crate) async fn press(&mut self, frames: &[u8]) {
        let _ = self.0.write_all(frames).await;
    }
}
