//! One message a line, both ways.

use agent::{Error, ErrorKind, Result};
use futures::StreamExt;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

/// Bytes of a line at most: a picture fits.
const LONGEST: usize = 64 << 20;

/// Messages that wait to be written; who says more waits as well.
const WAITING: usize = 256;

/// What the client says.
pub(super) struct Lines<R>(FramedRead<R, LinesCodec>);

/// Tells the client. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Out(mpsc::Sender<String>);

/// Both ends of a conversation.
pub(super) fn open<R: AsyncRead + Unpin>(
    reader: R,
    mut writer: impl AsyncWrite + Send + Unpin + 'static,
) -> (Lines<R>, Out, tokio::task::JoinHandle<()>) {
    let (out, mut lines) = mpsc::channel::<String>(WAITING);
    let writing = tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            // A client that does not read any more closes its own end, too.
            if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
    });
    (Lines(FramedRead::new(reader, LinesCodec::new_with_max_length(LONGEST))), Out(out), writing)
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The next message; none when the client closed its end. What is no JSON is an error text.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] if nothing can be read any more.
    pub(super) async fn next(&mut self) -> Result<Option<Result<Value, String>>> {
        loop {
            return Ok(match self.0.next().await {
                None => None,
                Some(Ok(line)) if line.trim().is_empty() => continue,
                Some(Ok(line)) => Some(serde_json::from_str(&line).map_err(|e| format!("this is no JSON: {e}"))),
                Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                    Some(Err(format!("a line has at most {LONGEST} bytes")))
                }
                Some(Err(LinesCodecError::Io(error))) => {
                    return Err(Error::new(ErrorKind::Transport, "the client cannot be heard").with_source(error));
                }
            });
        }
    }
}

impl Out {
    /// Tells the client something, or nobody if it went away.
    pub(super) async fn tell(&self, message: &Value) {
        let _ = self.0.send(format!("{message}\n")).await;
    }
}
