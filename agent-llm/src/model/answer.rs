//! One request and its answer.

use std::time::Duration;

use agent_core::{Error, ErrorKind, ModelRequest, ModelResponse, Result, Retry, boxed, model::Collector};
use bytes::{Buf, Bytes};
use futures::StreamExt;
use http::{HeaderMap, header};
use tokio::time::{Instant, timeout, timeout_at};

use super::{HttpModel, silence::Silence};
use crate::{Body, Progress, error::web_page, framing::BYTE_ORDER_MARK, redact::Redactor};

/// The most bytes of a refused request's answer that are read.
const MOST_OF_AN_ERROR: usize = 64 << 10;

/// Bytes of a stream that are read before the readers of events have their turn: a few dozen chunks.
const AT_ONCE: usize = 16 << 10;

/// How long the details of a complete answer are awaited, and all of a refusal's reasons.
const DETAILS: Duration = Duration::from_secs(10);

/// How long the end of a body is awaited after the answer's last event: a connection is used again only then.
const LAST_BYTES: Duration = Duration::from_millis(250);

impl HttpModel {
    /// `keys` learns the keys that are asked for.
    pub(super) async fn exchange(&self, req: &ModelRequest, keys: &mut Redactor) -> Result<ModelResponse> {
        let (form, body) = match self.send(req, keys).await? {
            Ok(answer) => answer,
            // In a box, as what else few calls need: the others have no room for it.
            Err(refused) => boxed(|| self.send_again(req, keys, refused)).await?,
        };
        self.read(req, form, body).await
    }

    /// Sends what was refused once more, if there is something to change about it.
    async fn send_again(&self, req: &ModelRequest, keys: &mut Redactor, refused: Error) -> Result<(Form, Incoming)> {
        match self.codec.amend(req, &refused) {
            Some(amended) => self.send(&amended, keys).await?,
            None if self.has_another_key(&refused).await => self.send(req, keys).await?,
            None => Err(refused),
        }
    }

    async fn has_another_key(&self, refused: &Error) -> bool {
        match (&self.http.credentials, &self.http.signer) {
            _ if refused.kind() != ErrorKind::Authentication => false,
            (Some(credentials), _) => credentials.refused().await,
            (None, Some(signer)) => signer.refused().await,
            (None, None) => false,
        }
    }

    /// What the answer is, and its body as it comes; the inner error is the provider's refusal.
    async fn send(&self, req: &ModelRequest, keys: &mut Redactor) -> Result<Result<(Form, Incoming)>> {
        let mut request = self.codec.encode(req)?;
        for (name, value) in &self.http.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        let mut silence = Silence::new(self.http.first_timeout, self.http.idle_timeout);
        if let Some(credentials) = &self.http.credentials {
            let key = silence.wait(credentials.key()).await??;
            keys.learn(&key);
            self.http.auth.show(&key, request.headers_mut())?;
        } else if let Some(signer) = &self.http.signer {
            silence.wait(signer.sign(&mut request)).await??;
            keys.learn_headers(request.headers());
        }
        let sent = silence.wait(self.http.transport.send(request)).await?;
        let whose = |e: Error| e.with_context("provider", self.codec.origin().provider());
        let (head, body) = sent.map_err(whose)?.into_parts();
        let mut body = Incoming { body, silence, left: self.http.max_answer };
        if !head.status.is_success() {
            let text = boxed(|| body.start()).await;
            return Ok(Err(self.codec.decode_error(head.status, &head.headers, &text)));
        }
        Ok(Ok((Form::of(&head.headers, req.stream), body)))
    }

    async fn read(&self, req: &ModelRequest, form: Form, mut body: Incoming) -> Result<ModelResponse> {
        match form {
            Form::Stream => boxed(|| self.read_stream(req, body)).await,
            Form::Whole => {
                let mut response = self.codec.decode(&body.whole().await?)?;
                response.message = req.sink.collect(response.message)?;
                Ok(response)
            }
            Form::Encoded(how) => Err(Error::new(
                ErrorKind::Protocol,
                format!("the answer is compressed as '{how}', which cannot be read"),
            )
            .with_retry(Retry::Permanent)),
            Form::WebPage => Err(web_page(self.codec.origin().provider())),
        }
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
                // What breaks, falls silent or only says that it is still there is the connection now, not the answer.
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
                    // What cannot be read here was cut, which the decoder says better.
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
                    tokio::task::yield_now().await; // whoever reads the events may catch up
                }
            }
        }
        let mut response = decoder.finish(&mut chunks)?;
        chunks.drain(..).try_for_each(|chunk| collector.push(chunk))?;
        response.message = collector.finish(response.message);
        Ok(response)
    }
}

/// What an answer with a good status is.
enum Form {
    Stream,
    Whole,
    /// In a way that the transport does not know.
    Encoded(String),
    WebPage,
}

impl Form {
    fn of(headers: &HeaderMap, asked_to_stream: bool) -> Self {
        let is = |name, value: &[u8]| {
            headers
                .get(name)
                .is_some_and(|v| v.as_bytes().get(..value.len()).is_some_and(|v| v.eq_ignore_ascii_case(value)))
        };
        let encoding = headers.get(header::CONTENT_ENCODING).map(|how| String::from_utf8_lossy(how.as_bytes()));
        if let Some(how) = encoding.filter(|how| !how.eq_ignore_ascii_case("identity")) {
            Self::Encoded(how.chars().take(40).collect())
        } else if is(header::CONTENT_TYPE, b"text/event-stream") {
            Self::Stream
        } else if is(header::CONTENT_TYPE, b"text/html") {
            Self::WebPage
        } else if asked_to_stream && !is(header::CONTENT_TYPE, b"application/json") {
            Self::Stream
        } else {
            Self::Whole
        }
    }
}

/// A body that must not fall silent, nor become too long.
struct Incoming {
    body: Body,
    silence: Silence,
    left: usize,
}

impl Incoming {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        let next = self.silence.wait(self.body.next()).await;
        self.silence.heard();
        match next {
            Ok(Some(Ok(bytes))) => match self.left.checked_sub(bytes.len()) {
                Some(left) => {
                    self.left = left;
                    Some(Ok(bytes))
                }
                None => Some(Err(Error::new(ErrorKind::Protocol, "the answer is longer than max_answer allows")
                    .with_retry(Retry::Permanent))),
            },
            Ok(end_or_error) => end_or_error,
            Err(silent) => Some(Err(silent)),
        }
    }

    async fn whole(&mut self) -> Result<Bytes> {
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        let Some(second) = self.next().await.transpose()? else { return Ok(without_mark(first)) };
        let mut all = [first, second].concat();
        while let Some(more) = self.next().await.transpose()? {
            all.extend_from_slice(&more);
        }
        Ok(without_mark(all.into()))
    }

    /// The first bytes of the body, as far as they came in time.
    async fn start(&mut self) -> Bytes {
        let (mut all, until) = (Vec::new(), Instant::now() + DETAILS);
        while all.len() < MOST_OF_AN_ERROR
            && let Ok(Some(Ok(more))) = timeout_at(until, self.next()).await
        {
            all.extend_from_slice(&more);
        }
        without_mark(all.into())
    }
}

/// The text without the byte order mark that some gateways put before it.
fn without_mark(mut text: Bytes) -> Bytes {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.advance(BYTE_ORDER_MARK.len());
    }
    text
}
