//! Line-based transport: one JSON message per line, in both directions.

use agent::{Error, ErrorKind, Result};
use futures::StreamExt;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

/// Maximum size of a line in bytes: large enough for an image.
const LONGEST: usize = 64 << 20;

/// Maximum number of messages waiting to be written; further senders wait.
const WAITING: usize = 256;

/// Reader of the client's messages.
pub(super) struct Lines<R>(FramedRead<R, LinesCodec>);

/// Sender of messages to the client. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Out(mpsc::Sender<String>);

/// Opens both directions of a connection.
pub(super) fn open<R: AsyncRead + Unpin>(
    reader: R,
    mut writer: impl AsyncWrite + Send + Unpin + 'static,
) -> (Lines<R>, Out, tokio::task::JoinHandle<()>) {
    let (out, mut lines) = mpsc::channel::<String>(WAITING);
    let writing = tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            // A client that stops reading also closes its own end.
            if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
    });
    (Lines(FramedRead::new(reader, LinesCodec::new_with_max_length(LONGEST))), Out(out), writing)
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Returns the next message; none once the client has closed its end. Invalid JSON yields an
    /// error text.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] if reading fails.
    pub(super) async fn next(&mut self) -> Result<Option<Result<Value, String>>> {
        loop {
            return Ok(match self.0.next().await {
                None => None,
                Some(Ok(line)) if line.trim().is_empty() => continue,
                Some(Ok(line)) => Some(serde_json::from_str(&line).map_err(|e| format!("invalid JSON: {e}"))),
                Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                    Some(Err(format!("the line is too long: at most {LONGEST} bytes are allowed")))
                }
                Some(Err(LinesCodecError::Io(error))) => {
                    return Err(Error::new(ErrorKind::Transport, "reading from the client failed").with_source(error));
                }
            });
        }
    }
}

impl Out {
    /// Sends a message to the client; ignored if the client has disconnected.
    pub(super) async fn tell(&self, message: &Value) {
        let _ = self.0.send(format!("{message}\n")).await;
    }
}
