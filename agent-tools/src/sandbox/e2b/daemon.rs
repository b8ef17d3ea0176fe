//! [`Daemon`]: client of the daemon that runs programs and moves files in a sandbox (Connect
//! protocol with JSON).

use std::time::Duration;

use agent_core::{Error, Result, run::new_id};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Buf, Bytes};
use futures::StreamExt;
use reqwest::{
    Method,
    header::{AUTHORIZATION, HeaderValue},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};

use super::{
    server::{Asked, Failure, Server},
    wire::{Event, Found, Info, Listing, Told, Trailer},
};
use crate::{
    http::Reader,
    sandbox::{Entry, LARGEST_FILE},
};

/// Timeout for the start of a program's stream.
const LONGEST: Duration = Duration::from_secs(30);

/// Keep-alive interval of a program's stream in seconds, and idle timeout.
const PING: HeaderValue = HeaderValue::from_static("20");
const SILENCE: Duration = Duration::from_secs(90);

/// Time that a stream has to end after its last event.
const REST: Duration = Duration::from_secs(1);

/// Maximum size of one stream message in bytes.
const LARGEST_MESSAGE: usize = 4 << 20;

/// Message flags: compressed, or last message.
const COMPRESSED: u8 = 1;
const LAST: u8 = 2;

/// Size of the message header: flags and length.
const HEAD: usize = 5;

const STREAM: &str = "application/connect+json";

/// Client of one sandbox's daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    server: Server,
    user: Option<String>,
}

/// Event stream of a program.
pub(super) struct Events {
    frames: FramedRead<Reader, LengthDelimitedCodec>,
    server: Server,
}

impl Daemon {
    /// Creates the client for a server, as a user of the sandbox; `None` is the template's default
    /// user.
    pub(super) fn new(server: Server, user: Option<String>) -> Self {
        let server = match &user {
            Some(user) => server.with_header(AUTHORIZATION.as_str(), basic(user)),
            None => server,
        };
        Self { server, user }
    }

    /// Starts a program under a tag. Its first event carries its process id.
    pub(super) async fn start(
        &self,
        program: &str,
        args: &[String],
        env: &Value,
        input: bool,
    ) -> Result<(u32, Events)> {
        let process = json!({"cmd": program, "args": args, "envs": env, "cwd": "/"});
        self.follow("Start", &json!({"process": process, "stdin": input})).await
    }

    /// Subscribes to a running program. Output that it wrote without a subscriber is lost.
    pub(super) async fn connect(&self, pid: u32) -> Result<Events> {
        Ok(self.follow("Connect", &json!({"process": {"pid": pid}})).await?.1)
    }

    async fn follow(&self, method: &str, message: &Value) -> Result<(u32, Events)> {
        let message = message.to_string().into_bytes();
        let length = u32::try_from(message.len()).map_err(|_| Error::tool("the command is too long"))?;
        let framed = [&[0], &length.to_be_bytes()[..], &message].concat();
        let asked = Asked::new(Method::POST, format!("/process.Process/{method}")).body(STREAM, framed);
        let asked = asked.header("connect-protocol-version", HeaderValue::from_static("1"));
        let asked = asked.header("keepalive-ping-interval", PING);
        let begun = async {
            let exchange = self.server.open(&asked).await?;
            // The output of a program is unbounded; each message is bounded.
            let (reader, _) = exchange.body.reader(usize::MAX).map_err(|_| self.damaged())?;
            let mut events = Events { frames: frames(reader), server: self.server.clone() };
            loop {
                match events.next().await? {
                    Some(Event::Started(pid)) => return Ok((pid, events)),
                    Some(Event::Alive) => {}
                    _ => return Err(self.damaged()),
                }
            }
        };
        let late = |_| Err(self.server.temporary("did not start the program in time"));
        timeout(LONGEST, begun).await.unwrap_or_else(late)
    }

    fn damaged(&self) -> Error {
        self.server.temporary("sent a stream that is damaged")
    }

    pub(super) async fn write_input(&self, pid: u32, input: &[u8]) -> Result<()> {
        let input = json!({"process": {"pid": pid}, "input": {"stdin": STANDARD.encode(input)}});
        Ok(self.call::<Value>("process.Process/SendInput", &input, false).await.map(drop)?)
    }

    /// Closes the input of a program, which may have ended.
    ///
    /// # Errors
    /// If the input cannot be closed: the program may then wait forever.
    pub(super) async fn end_input(&self, pid: u32) -> Result<()> {
        let program = json!({"process": {"pid": pid}});
        match self.call::<Value>("process.Process/CloseStdin", &program, true).await {
            Err(e) if !e.is_code("not_found") => Err(e.into()),
            _ => Ok(()),
        }
    }

    /// Kills one process without its descendants.
    pub(super) async fn kill(&self, pid: u32) -> Result<()> {
        let signal = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
        Ok(self.call::<Value>("process.Process/SendSignal", &signal, true).await.map(drop)?)
    }

    pub(super) async fn list(&self, path: &str) -> Result<Vec<Entry>, Failure> {
        let asked = json!({"path": path, "depth": 1});
        let listing: Listing = self.call("filesystem.Filesystem/ListDir", &asked, true).await?;
        Ok(listing.entries.into_iter().map(Info::into).collect())
    }

    /// Returns the entry at a path; `None` if it does not exist.
    pub(super) async fn stat(&self, path: &str) -> Result<Option<Entry>, Failure> {
        match self.call::<Found>("filesystem.Filesystem/Stat", &json!({"path": path}), true).await {
            Ok(found) => Ok(Some(found.entry.into())),
            Err(e) if e.is_code("not_found") => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, message: &Value, repeatable: bool) -> Result<T, Failure> {
        let asked = Asked::json(format!("/{method}"), message);
        let asked = asked.header("connect-protocol-version", HeaderValue::from_static("1"));
        self.server.json(if repeatable { asked.repeatable() } else { asked }).await
    }

    /// Downloads the file at an absolute path.
    pub(super) async fn download(&self, path: &str) -> Result<Bytes, Failure> {
        let most = usize::try_from(LARGEST_FILE).unwrap_or(usize::MAX);
        let asked = self.as_user(Asked::new(Method::GET, "/files").query("path", path).most(most));
        Ok(self.server.ask(asked).await?.body.into())
    }

    /// Uploads a file to an absolute path, not atomically: concurrent readers may see a part.
    pub(super) async fn upload(&self, path: &str, content: &[u8]) -> Result<(), Failure> {
        let boundary = new_id();
        let disposition = "content-disposition: form-data; name=\"file\"; filename=\"file\"";
        let head = format!("--{boundary}\r\n{disposition}\r\ncontent-type: application/octet-stream\r\n\r\n");
        let body = [head.as_bytes(), content, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
        let kind = format!("multipart/form-data; boundary={boundary}");
        let asked = Asked::new(Method::POST, "/files").query("path", path).body(&kind, body).repeatable();
        self.server.ask(self.as_user(asked)).await.map(drop)
    }

    fn as_user(&self, asked: Asked) -> Asked {
        match &self.user {
            Some(user) => asked.query("username", user.as_str()),
            None => asked,
        }
    }
}

impl Events {
    /// Returns the next event; `None` at the end. Cancellation safe.
    pub(super) async fn next(&mut self) -> Result<Option<Event>> {
        let silent = |_| Err(self.server.temporary("says nothing of a program any more"));
        let frame = timeout(SILENCE, self.frames.next()).await;
        let frame = match frame {
            Ok(Some(Ok(frame))) => frame.freeze(),
            Ok(_) => return Err(self.server.temporary("broke off the stream of a program")),
            Err(late) => return silent(late),
        };
        let (flags, message) = (frame.chunk()[0], frame.slice(HEAD..));
        if flags & COMPRESSED != 0 {
            return Err(self.server.temporary("compresses what it was not asked to compress"));
        }
        if flags & LAST == 0 {
            return Ok(Some(self.server.parsed::<Told>(&message)?.into()));
        }
        match self.server.parsed::<Trailer>(&message)?.error {
            Some(error) => Err(self.server.stream_refused(&error).into()),
            None => Ok(None),
        }
    }

    /// Reads the rest of the stream after the last event, so that the connection can be reused.
    pub(super) async fn finish(mut self) {
        let rest = async { while let Some(Ok(_)) = self.frames.next().await {} };
        drop(timeout(REST, rest).await);
    }
}

fn frames(reader: Reader) -> FramedRead<Reader, LengthDelimitedCodec> {
    let codec = LengthDelimitedCodec::builder()
        .length_field_offset(1)
        .length_field_length(HEAD - 1)
        // The length excludes the header, which is kept for its flags.
        .length_adjustment(HEAD as isize)
        .num_skip(0)
        .max_frame_length(LARGEST_MESSAGE)
        .new_codec();
    FramedRead::new(reader, codec)
}

fn basic(user: &str) -> HeaderValue {
    HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:")))).expect("it is of letters")
}
