//! The innermost model call: reserves its budget, runs as a journalled step, and records its usage.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use agent_core::{
    BoxFuture, Deadlines, Error, Model, ModelRequest, ModelResponse, Result, boxed, engine::Hook, run::DeadlineKind,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tower::Service;

use super::guard::caught;
use crate::{engine::Opened, leaf::Leaf};

/// Innermost service of the model's stack.
#[derive(Clone)]
pub(crate) struct ModelCore(Arc<Innermost>);

/// Shared by reference count, since every call clones the service.
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
            if let Some(answered) = cx.engine().log().stored_answer() {
                return Ok(answered);
            }
            let (model, mut is_new, mut settling) = (request.model.clone(), false, None);
            let call = async {
                is_new = true;
                let reserved = cx.engine().reserve_model_call(&mut request).await?;
                request.cx = request.cx.engine().in_hook(Hook::Model, 0);
                let is_streamed = request.stream;
                let call = boxed(|| self.0.clone().call_alone(request));
                let mut answered = if is_streamed { Leaf::new(call).await } else { call.await };
                if let Ok(response) = &mut answered {
                    cx.engine().complete_usage(reserved.as_ref(), response);
                }
                settling = reserved.map(|reserved| {
                    boxed(|| cx.budget().settle_model_call(Some(reserved), model.as_deref(), &answered))
                });
                answered
            };
            // Pinned in place: passing the future by value to the step would move all of it.
            let answered = { cx.engine().log().model_step(cx.step(), pin!(call)).await };
            if let Ok(response) = &answered
                && !is_new
            {
                cx.budget().count_again(cx.budget().used_by(model.as_deref(), response));
            }
            // The answer is recorded by now: a ledger that fails does not cost it.
            match settling {
                Some(settling) => {
                    let settled = settling.await;
                    answered.and_then(|response| settled.map(|()| response))
                }
                None => answered,
            }
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
    async fn call_alone(self: Arc<Self>, request: ModelRequest) -> Result<ModelResponse> {
        caught("the model", self.call(request)).await
    }

    /// Makes the call; fails it if a chunk of its stream is late.
    fn call(&self, mut request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse>> {
        if let Some(chosen) = request.take_chosen_model() {
            let other = Self { model: chosen, deadlines: self.deadlines.clone() };
            return boxed(|| async move { other.call(request).await });
        }
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

/// Time of the last chunk of a stream.
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

    /// Waits until a chunk is late. One timer serves many chunks: it is re-armed only when it fires
    /// early.
    async fn too_late(&self, deadlines: &Deadlines) -> Error {
        loop {
            let heard = *self.lock();
            let (which, most) = match heard {
                None => (DeadlineKind::FirstChunk, deadlines.first_chunk),
                Some(_) => (DeadlineKind::ChunkGap, deadlines.chunk_gap),
            };
            let Some(most) = most else {
                self.first.notified().await; // never notified again: no limit applies any more
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
