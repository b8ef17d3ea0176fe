//! [`Daemon`]: what runs programs and moves files in a sandbox, by Connect with JSON.

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

/// Longest time until a program's stream begins.
const LONGEST: Duration = Duration::from_secs(30);

/// How often the daemon is to say that a program lives, in seconds, and how long it may say nothing at all.
const PING: HeaderValue = HeaderValue::from_static("20");
const SILENCE: Duration = Duration::from_secs(90);

/// How long a stream may take to end after its last event.
const REST: Duration = Duration::from_secs(1);

/// Most bytes of one message of a stream.
const LARGEST_MESSAGE: usize = 4 << 20;

/// The flags of a message: its bytes are compressed, or it is the last one.
const COMPRESSED: u8 = 1;
const LAST: u8 = 2;

/// Bytes before a message: flags, and its length.
const HEAD: usize = 5;

const STREAM: &str = "application/connect+json";

/// The daemon of one sandbox. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    server: Server,
    user: Option<String>,
}

/// What happens to a program.
pub(super) struct Events {
    frames: FramedRead<Reader, LengthDelimitedCodec>,
    server: Server,
}

impl Daemon {
    /// The daemon at a server, for a user of the sandbox; none is the template's own.
    pub(super) fn new(server: Server, user: Option<String>) -> Self {
        let server = match &user {
            Some(user) => server.with_header(AUTHORIZATION.as_str(), basic(user)),
            None => server,
        };
        Self { server, user }
    }

    /// Starts a program under a tag. Its first event says its number.
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

    /// Follows a program that runs. What it wrote while nobody followed it is gone.
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
            // What a program writes has no end: each message has.
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

    /// Ends the input of a program, which may have ended.
    ///
    /// # Errors
    /// If it cannot be ended: then the program may wait for ever.
    pub(super) async fn end_input(&self, pid: u32) -> Result<()> {
        let program = json!({"process": {"pid": pid}});
        match self.call::<Value>("process.Process/CloseStdin", &program, true).await {
            Err(e) if !e.is_code("not_found") => Err(e.into()),
            _ => Ok(()),
        }
    }

    /// Kills one process, and nothing that it has started.
    pub(super) async fn kill(&self, pid: u32) -> Result<()> {
        let signal = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
        Ok(self.call::<Value>("process.Process/SendSignal", &signal, true).await.map(drop)?)
    }

    pub(super) async fn list(&self, path: &str) -> Result<Vec<Entry>, Failure> {
        let asked = json!({"path": path, "depth": 1});
        let listing: Listing = self.call("filesystem.Filesystem/ListDir", &asked, true).await?;
        Ok(listing.entries.into_iter().map(Info::into).collect())
    }

    /// What has this path; none if nothing has.
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

    /// The content of a file, at an absolute path.
    pub(super) async fn download(&self, path: &str) -> Result<Bytes, Failure> {
        let most = usize::try_from(LARGEST_FILE).unwrap_or(usize::MAX);
        let asked = self.as_user(Asked::new(Method::GET, "/files").query("path", path).most(most));
        Ok(self.server.ask(asked).await?.body.into())
    }

    /// Writes a file at an absolute path, not at once: who reads it meanwhile sees a part.
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
    /// The next one; none at the end. Nothing is lost if the future is dropped.
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

    /// Reads what follows the last event, so that the connection can be used again.
    pub(super) async fn finish(mut self) {
        let rest = async { while let Some(Ok(_)) = self.frames.next().await {} };
        drop(timeout(REST, rest).await);
    }
}

fn frames(reader: Reader) -> FramedRead<Reader, LengthDelimitedCodec> {
    let codec = LengthDelimitedCodec::builder()
        .length_field_offset(1)
        .length_field_length(HEAD - 1)
        // What is given has its head: the flags stand there.
        .length_adjustment(HEAD as isize)
        .num_skip(0)
        .max_frame_length(LARGEST_MESSAGE)
        .new_codec();
    FramedRead::new(reader, codec)
}

fn basic(user: &str) -> HeaderValue {
    HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:")))).expect("it is of letters")
}
