//! Blocked content: personal data, injected instructions, and objections of guards.

use crate::common;
mod pii;
mod pii_stream;

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Chunk, ModelRequest, ModelResponse, Result, RunCx, middleware::Middlewares, model::MessageBuilder,
};
use common::model_stack;
use tower::ServiceExt;

/// Returns the chunks that readers receive of a model call with `list` whose model streams these
/// chunks, and the final response.
async fn speak(list: &Middlewares, cx: &RunCx, chunks: Vec<Chunk>) -> (Vec<Chunk>, Result<ModelResponse>) {
    let model = model_stack(list, move |req: ModelRequest| {
        let chunks = chunks.clone();
        async move {
            let mut said = MessageBuilder::default();
            let mut collector = agent_core::model::Collector::new(&req.sink);
            for chunk in chunks {
                said.push(&chunk);
                collector.push(chunk)?;
            }
            Ok(ModelResponse::new(collector.finish(said.finish())))
        }
    });
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (mut req, hears) = (ModelRequest::new(cx.clone()), heard.clone());
    req.sink = req.sink.with_observer(move |chunk| hears.lock().expect("free").push(chunk.clone()));
    let response = model.oneshot(req).await;
    (std::mem::take(&mut *heard.lock().expect("free")), response)
}

/// Returns the message that the chunks form.
fn folded(chunks: &[Chunk]) -> AssistantMessage {
    let mut message = MessageBuilder::default();
    chunks.iter().for_each(|chunk| message.push(chunk));
    message.finish()
}

fn text(delta: &str) -> Chunk {
    Chunk::Text { index: 0, delta: delta.to_owned() }
}

const END: Chunk = Chunk::End { index: 0 };
