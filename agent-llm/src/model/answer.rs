//! One request and its answer.

use std::{borrow::Cow, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, EventKind, ModelRequest, ModelResponse, Result, boxed, model::Collector};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    HttpModel,
    incoming::{DETAILS, Form, Incoming},
};
use crate::{Codec, Progress, redact::Redactor};

/// Bytes of a stream to process before yielding to event readers: a few dozen chunks.
const AT_ONCE: usize = 16 << 10;

/// Maximum wait for the end of the body after the last event: only then can the connection be
/// reused.
const LAST_BYTES: Duration = Duration::from_millis(250);

/// Maximum number of repairs of one refused request.
const MOST_REPAIRS: usize = 4;

/// Response detail with the rules by which a refused request was repaired, for the journal.
const REPAIRS: &str = "repairs";

impl HttpModel {
    /// Sends the request and reads its answer. `keys` records the keys in use, for redaction.
    pub(super) async fn exchange(&self, req: &ModelRequest, keys: &mut Redactor) -> Result<ModelResponse> {
        let codec = self.codec();
        match self.send(&*codec, req, keys).await? {
            Ok((form, body)) => read(&*codec, req, form, body).await,
            // Boxed, like other rare paths, so that common calls do not pay for the space.
            Err(refused) => boxed(|| self.send_again(codec.clone(), req, keys, refused)).await,
        }
    }

    /// Sends a refused request again, as long as the codec or the credentials offer a change.
    async fn send_again(
        &self,
        mut codec: Arc<dyn Codec>,
        req: &ModelRequest,
        keys: &mut Redactor,
        mut refused: Error,
    ) -> Result<ModelResponse> {
        let (mut req, mut is_amended, mut has_new_key) = (Cow::Borrowed(req), false, false);
        let mut repairs = Vec::new();
        loop {
            if let Some(adapted) = codec.adapt(&refused).filter(|_| repairs.len() < MOST_REPAIRS) {
                req.cx.emit(EventKind::Warning { message: repaired(&refused, &adapted.rule, &self.http.redactor) });
                repairs.push(Value::String(adapted.rule));
                codec = adapted.codec;
                if adapted.is_lasting {
                    self.adapt(&codec);
                }
            } else if let Some(amended) = codec.amend(&req, &refused).filter(|_| !is_amended) {
                (req, is_amended) = (Cow::Owned(amended), true);
            } else if !has_new_key && self.http.has_another_key(&refused).await {
                has_new_key = true;
            } else {
                return Err(refused);
            }
            match self.send(&*codec, &req, keys).await? {
                Ok((form, body)) => {
                    let mut response = read(&*codec, &req, form, body).await?;
                    if !repairs.is_empty() {
                        response.details.insert(REPAIRS.into(), repairs.into());
                    }
                    return Ok(response);
                }
                Err(again) => refused = again,
            }
        }
    }

    /// Sends the request; returns the form of the answer and its body. The inner error is the
    /// provider's refusal.
    async fn send(
        &self,
        codec: &dyn Codec,
        req: &ModelRequest,
        keys: &mut Redactor,
    ) -> Result<Result<(Form, Incoming)>> {
        let request = codec.encode(req)?;
        let (head, mut body) = self.http.send(request, codec.origin().provider(), keys).await?;
        if !head.status.is_success() {
            let text = boxed(|| body.start()).await;
            return Ok(Err(codec.decode_error(head.status, &head.headers, &text)));
        }
        Ok(Ok((Form::of(&head.headers, req.stream), body)))
    }
}

/// Returns the warning for a refused request that was repaired.
fn repaired(refused: &Error, rule: &str, redactor: &Redactor) -> String {
    const MOST: usize = 300;
    let said = redactor.redact(refused.message());
    let said: String = said.chars().take(MOST).collect();
    format!("the provider refused a request, which is sent again with {rule}: {said}")
}

async fn read(codec: &dyn Codec, req: &ModelRequest, form: Form, mut body: Incoming) -> Result<ModelResponse> {
    if !form.comes_whole(codec.origin().provider())? {
        return boxed(|| read_stream(codec, req, body)).await;
    }
    let mut response = codec.decode(&body.whole().await?)?;
    response.message = req.sink.collect(response.message)?;
    Ok(response)
}

async fn read_stream(codec: &dyn Codec, req: &ModelRequest, mut body: Incoming) -> Result<ModelResponse> {
    let mut splitter = codec.framing().splitter();
    let mut decoder = codec.decoder(!req.sink.is_idle());
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
