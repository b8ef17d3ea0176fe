//! The model's own call: allowance is reserved, the call is a journalled step, and what it used is counted.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use agent_core::{BoxFuture, Deadlines, Error, Model, ModelRequest, ModelResponse, Result, boxed, run::DeadlineKind};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tower::Service;

use super::guard::caught;
use crate::engine::Opened;

/// The innermost service of the model's stack.
#[derive(Clone)]
pub(crate) struct ModelCore(Arc<Innermost>);

/// Behind one reference count, since every call clones the service.
struct Innermost {
    model: Arc<dyn Model>,
    deadlines: Arc<Deadlines>,
}

impl ModelCore {
    pub(crate) fn new(model: Arc<dyn Model>, deadlines: Arc<Deadlines>) -> Self {
        Self(Arc::new(Innermost { model, deadlines }))
    }

    fn run(self, mut request: ModelRequest) -> impl Future<Output = Result<ModelResponse>> + Send {
        let cx = request.cx.clone();
        async move {
            if let Some(answered) = cx.engine().log().next_answered() {
                return Ok(answered);
            }
            let (model, mut is_new) = (request.model.clone(), false);
            let call = async {
                is_new = true;
                let reserved = cx.engine().reserve_model_call(&mut request).await?;
                let answered = caught("the model", self.0.call(request)).await;
                cx.budget().settle_model_call(reserved, model.as_deref(), &answered).await?;
                answered
            };
            // Pinned where it is: the step would move all of it.
            let answered = { cx.engine().log().model_step(cx.step(), pin!(call)).await };
            if let Ok(response) = &answered
                && !is_new
            {
                cx.budget().count_again(cx.budget().used_by(model.as_deref(), response));
            }
            answered
        }
    }
}

impl Service<ModelRequest> for ModelCore {
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ModelRequest) -> Self::Future {
        boxed(|| self.clone().run(request))
    }
}

impl Innermost {
    /// Makes the call; ends it if a chunk of its stream is too late.
    fn call(&self, mut request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse>> {
        if !request.stream || (self.deadlines.first_chunk.is_none() && self.deadlines.chunk_gap.is_none()) {
            return (*self.model).call(request);
        }
        let watch = Arc::new(Watch { began: Instant::now(), heard: Mutex::default(), first: Notify::new() });
        let hears = watch.clone();
        request.sink = request.sink.with_observer(move |_| hears.hear());
        let call = (*self.model).call(request);
        boxed(|| async move {
            tokio::select! {
                biased;
                answered = call => answered,
                late = watch.too_late(&self.deadlines) => Err(late),
            }
        })
    }
}

/// When a stream was last heard.
struct Watch {
    began: Instant,
    heard: Mutex<Option<Instant>>,
    first: Notify,
}

impl Watch {
    fn hear(&self) {
        if self.lock().replace(Instant::now()).is_none() {
            self.first.notify_one();
        }
    }

    /// Waits until a chunk is too late. One timer lasts for many chunks: it is only moved when it fires too early.
    async fn too_late(&self, deadlines: &Deadlines) -> Error {
        loop {
            let heard = *self.lock();
            let (which, most) = match heard {
                None => (DeadlineKind::FirstChunk, deadlines.first_chunk),
                Some(_) => (DeadlineKind::ChunkGap, deadlines.chunk_gap),
            };
            let Some(most) = most else {
                self.first.notified().await; // never a second time: nothing is limited any more
                continue;
            };
            let Some(at) = heard.unwrap_or(self.began).checked_add(most) else { return std::future::pending().await };
            if Instant::now() >= at {
                return match which {
                    DeadlineKind::FirstChunk => which.passed(format!("the answer did not begin within {most:?}"), most),
                    _ => which.passed(format!("nothing of the answer arrived for {most:?}"), most),
                };
            }
            sleep_until(at).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
