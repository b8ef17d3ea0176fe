//! One request and its answer.

use std::time::Duration;

use agent_core::{Error, ErrorKind, ModelRequest, ModelResponse, Result, boxed, model::Collector};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    HttpModel,
    incoming::{DETAILS, Form, Incoming},
};
use crate::{Progress, redact::Redactor};

/// Bytes of a stream to process before yielding to event readers: a few dozen chunks.
const AT_ONCE: usize = 16 << 10;

/// Maximum wait for the end of the body after the last event: only then can the connection be
/// reused.
const LAST_BYTES: Duration = Duration::from_millis(250);

impl HttpModel {
    /// Sends the request and reads its answer. `keys` records the keys in use, for redaction.
    pub(super) async fn exchange(&self, req: &ModelRequest, keys: &mut Redactor) -> Result<ModelResponse> {
        let (form, body) = match self.send(req, keys).await? {
            Ok(answer) => answer,
            // Boxed, like other rare paths, so that common calls do not pay for the space.
            Err(refused) => boxed(|| self.send_again(req, keys, refused)).await?,
        };
        self.read(req, form, body).await
    }

    /// Sends a refused request once more, if the codec or the credentials offer a change.
    async fn send_again(&self, req: &ModelRequest, keys: &mut Redactor, refused: Error) -> Result<(Form, Incoming)> {
        match self.codec.amend(req, &refused) {
            Some(amended) => self.send(&amended, keys).await?,
            None if self.http.has_another_key(&refused).await => self.send(req, keys).await?,
            None => Err(refused),
        }
    }

    /// Sends the request; returns the form of the answer and its body. The inner error is the
    /// provider's refusal.
    async fn send(&self, req: &ModelRequest, keys: &mut Redactor) -> Result<Result<(Form, Incoming)>> {
        let request = self.codec.encode(req)?;
        let (head, mut body) = self.http.send(request, self.codec.origin().provider(), keys).await?;
        if !head.status.is_success() {
            let text = boxed(|| body.start()).await;
            return Ok(Err(self.codec.decode_error(head.status, &head.headers, &text)));
        }
        Ok(Ok((Form::of(&head.headers, req.stream), body)))
    }

    async fn read(&self, req: &ModelRequest, form: Form, mut body: Incoming) -> Result<ModelResponse> {
        if !form.comes_whole(self.codec.origin().provider())? {
            return boxed(|| self.read_stream(req, body)).await;
        }
        let mut response = self.codec.decode(&body.whole().await?)?;
        response.message = req.sink.collect(response.message)?;
        Ok(response)
    }

    async fn read_stream(&self, req: &ModelRequest, mut body: Incoming) -> Result<ModelResponse> {
        let mut splitter = self.codec.framing().splitter();
        let mut decoder = self.codec.decoder(!req.sink.is_idle());
        let mut collector = Collector::new(&req.sink);
        let mut chunks = Vec::new();
        let mut complete_since = None;
        loop {
            let next = match decoder.progress() {
                Progress::Open => body.next().await,
                // After completion, an error, silence or mere keep-alives concern the connection,
                // not the answer.
                Progress::Complete => {
                    let until = *complete_since.get_or_insert_with(Instant::now) + DETAILS;
                    timeout_at(until, body.next()).await.ok().flatten().filter(Result::is_ok)
                }
                Progress::Ended => {
                    let _ = timeout(LAST_BYTES, body.next()).await;
                    break;
                }
            };
            let Some(bytes) = next.transpose()? else {
                match splitter.finish(|event| decoder.frame(event, &mut chunks)) {
                    // Undecodable data here means truncation, which the decoder reports more
                    // precisely.
                    Err(e) if e.kind() != ErrorKind::Protocol => return Err(e),
                    _ => break,
                }
            };
            for piece in bytes.chunks(AT_ONCE) {
                splitter.push(piece, |event| {
                    decoder.frame(event, &mut chunks)?;
                    chunks.drain(..).try_for_each(|chunk| collector.push(chunk))
                })?;
                if req.is_crowded() {
                    tokio::task::yield_now().await; // event readers may catch up
                }
            }
        }
        let mut response = decoder.finish(&mut chunks)?;
        chunks.drain(..).try_for_each(|chunk| collector.push(chunk))?;
        response.message = collector.finish(response.message);
        Ok(response)
    }
}
