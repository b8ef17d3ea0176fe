//! A streamed model call is polled by the run itself: what is around it is not polled for chunks.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use agent_core::{
    BoxFuture, Chunk, ChunkSink, Error, ErrorKind, EventKind, Model, ModelInfo, ModelRequest, ModelResponse, Result,
    RunRequest, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use futures::StreamExt;
use tokio::{sync::oneshot, task::yield_now, time::sleep};
use tower::{Service, layer::layer_fn};

use crate::common::{finished, ms};

/// Wraps the future of every call of the inner service.
#[derive(Clone)]
struct Around<S, F>(S, F);

impl<S, F> Service<ModelRequest> for Around<S, F>
where
    S: Service<ModelRequest, Response = ModelResponse, Error = Error>,
    S::Future: Send + 'static,
    F: Fn(BoxFuture<'static, Result<ModelResponse>>) -> BoxFuture<'static, Result<ModelResponse>>,
{
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        (self.1)(Box::pin(self.0.call(req)))
    }
}

/// Counts the polls of a future.
struct Counted(BoxFuture<'static, Result<ModelResponse>>, Arc<AtomicUsize>);

impl Future for Counted {
    type Output = Result<ModelResponse>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.as_mut().poll(cx)
    }
}

/// Says one word per 5 ms, or whenever it is polled again.
struct Talker {
    words: usize,
    pauses: bool,
}

impl Talker {
    async fn say(&self, sink: &ChunkSink, i: usize) -> Result<()> {
        if self.pauses {
            sleep(ms(5)).await;
        } else {
            yield_now().await;
        }
        sink.push(Chunk::Text { index: 0, delta: format!("{i} ") })
    }
}

#[async_trait]
impl Model for Talker {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("talker")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        for i in 0..self.words {
            self.say(&req.sink, i).await?;
        }
        Ok(ModelResponse::new("done"))
    }
}

async fn polls_around(model: Talker) -> (usize, usize) {
    let polls = Arc::new(AtomicUsize::new(0));
    let counts = polls.clone();
    let count = move |call| -> BoxFuture<'static, _> { Box::pin(Counted(call, counts.clone())) };
    let agent = Agent::builder("a", model)
        .streaming(true)
        .model_layer(layer_fn(move |inner| Around(inner, count.clone())))
        .build()
        .expect("builds");
    let mut run = agent.start(RunRequest::user("talk"));
    let mut chunks = 0;
    while let Some(event) = run.next().await {
        chunks += usize::from(matches!(event.kind, EventKind::Chunk(Chunk::Text { .. })));
    }
    assert_eq!(finished(run.await).answer, "done");
    (polls.load(Ordering::Relaxed), chunks)
}

#[tokio::test(start_paused = true)]
async fn a_layer_is_polled_when_a_call_begins_and_ends_and_not_for_its_chunks() {
    assert_eq!(polls_around(Talker { words: 200, pauses: true }).await, (2, 200));
    assert_eq!(polls_around(Talker { words: 200, pauses: false }).await, (2, 200));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_layer_moved_to_another_task_goes_on_when_its_run_is_dropped() {
    let (send, done) = oneshot::channel();
    let send = Arc::new(std::sync::Mutex::new(Some(send)));
    let moves = move |call: BoxFuture<'static, Result<ModelResponse>>| -> BoxFuture<'static, _> {
        let send = send.lock().expect("no panic").take().expect("one call");
        Box::pin(async move {
            let mut call = call;
            // It begins here, within the run, and ends in the task.
            assert!(futures::poll!(&mut call).is_pending());
            tokio::spawn(async move { send.send(call.await) });
            std::future::pending().await
        })
    };
    let agent = Agent::builder("a", Talker { words: 20, pauses: true })
        .streaming(true)
        .model_layer(layer_fn(move |inner| Around(inner, moves.clone())))
        .build()
        .expect("builds");
    let run = agent.start(RunRequest::user("talk"));
    tokio::select! {
        _ = run => panic!("nothing ends the run"),
        () = sleep(ms(32)) => {}
    }
    let answer = done.await.expect("the task goes on").expect("and has the answer");
    assert_eq!(answer.message.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_streamed_call_that_panics_fails_its_run_and_names_the_model() {
    struct Panics;

    #[async_trait]
    impl Model for Panics {
        fn info(&self) -> ModelInfo {
            ModelInfo::new("panics")
        }

        async fn call(&self, _: ModelRequest) -> Result<ModelResponse> {
            sleep(ms(5)).await;
            panic!("out of words")
        }
    }

    let agent = Agent::builder("a", Panics).streaming(true).build().expect("builds");
    let failed = agent.start(RunRequest::user("talk")).await.expect_err("it panicked");
    assert_eq!(failed.kind(), ErrorKind::Unexpected);
    assert!(failed.to_string().contains("the model"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn the_streamed_calls_of_many_runs_on_one_task_do_not_disturb_each_other() {
    let runs = (0..50_u64).map(|i| async move {
        let turns = [Turn::text("one two three").delay(ms(1 + i)), Turn::text("four five")];
        let agent = Agent::builder("a", ScriptedModel::new(turns)).streaming(true).build().expect("builds");
        finished(agent.start(RunRequest::user("talk")).await).answer
    });
    let answers = futures::future::join_all(runs).await;
    assert!(answers.iter().all(|answer| answer == "one two three"), "{answers:?}");
}
