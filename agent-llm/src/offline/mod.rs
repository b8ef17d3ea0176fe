//! Model without weights, network or key: it searches, reads and quotes.

mod agents;
mod answer;
mod evidence;
mod exchange;
mod intent;
mod kinds;
mod outline;
mod params;
mod parse;
mod passages;
mod plan;
mod rank;
mod roles;
mod terms;
mod words;

use agent_core::{
    AssistantMessage, Block, Chunk, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, TokenCounter,
    ToolChoice, ToolSpec, Usage, async_trait, model::Collector,
};

use self::{exchange::Exchange, plan::Step, roles::Roles};
use crate::tokens::ApproximateCounter;

/// Stand-in for a language model: it does real work on real input, but it only finds and quotes.
///
/// From the question and the available tools it plans searches, reads around the best hits, several
/// files at once, calls a sub-agent if one matches, and answers with the best-ranked passages
/// (BM25F), each with its file and lines. It recognises tools by their parameters and descriptions
/// rather than by name, and never calls one that changes something. For unsupported tasks
/// (calculating, writing, answering without tools) it says so, and explains how to connect a real
/// model.
///
/// It is a pure function of the request: the same conversation always has the same next message, an
/// answer follows after at most three messages with calls, and no state is kept between calls.
/// Usage is [estimated](ApproximateCounter).
///
/// ```
/// use agent_core::{History, Message, Model, ModelRequest, testing::detached_run};
/// use agent_llm::offline::OfflineModel;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let run = detached_run(History::from_messages([Message::user("What is 6 x 7?")])?);
/// let reply = OfflineModel.call(ModelRequest::new(run.cx().clone())).await?;
/// assert!(reply.message.text().starts_with("I cannot calculate."));
/// # Ok::<(), agent_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OfflineModel;

#[async_trait]
impl Model for OfflineModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("offline").with_provider("built-in")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let message = reply(&req);
        let mut collector = Collector::new(&req.sink);
        for chunk in chunks(&message) {
            collector.push(chunk)?;
            tokio::task::yield_now().await; // so that the call can be dropped between two words
        }
        let usage = Usage::new(prompt_tokens(&req), ApproximateCounter.message(&Message::Assistant(message.clone())));
        let mut response = ModelResponse::new(collector.finish(message)).with_usage(usage);
        response.model = Some(self.info().name.into());
        Ok(response)
    }
}

/// Computes the answer to a request, as a pure function.
fn reply(req: &ModelRequest) -> AssistantMessage {
    let no_tools = req.params.tool_choice == Some(ToolChoice::None);
    let tools: &[ToolSpec] = if no_tools { &[] } else { &req.tools };
    let is_sub_agent = req.cx.ids().depth > 0;
    match plan::next(&Exchange::of(&req.messages), &Roles::of(tools), is_sub_agent) {
        Step::Answer(text) => AssistantMessage::from(text.as_str()),
        Step::Call(text, mut calls) => {
            if req.params.parallel_tool_calls == Some(false) {
                calls.truncate(1);
            }
            // Unique within the run: derived from the step, or from the length of the history if
            // steps are not counted.
            let prefix = format!("call-{}-{}", req.cx.step(), req.messages.len());
            let call = |(n, call): (usize, roles::Wanted)| {
                Block::tool_call(format!("{prefix}-{n}"), call.tool, call.args.to_string())
            };
            let calls = (1..).zip(calls).map(call);
            AssistantMessage::new(std::iter::once(Block::text(text)).chain(calls).collect())
        }
    }
}

/// Returns the chunks of a message: its text word by word.
fn chunks(message: &AssistantMessage) -> impl Iterator<Item = Chunk> {
    (0..).zip(message.blocks()).flat_map(|(index, block)| {
        let mut chunks = match block {
            Block::ToolCall(call) => vec![
                Chunk::ToolCall { index, id: call.id.clone(), name: call.name.clone() },
                Chunk::Arguments { index, delta: call.arguments.clone() },
            ],
            Block::Text(text) => {
                let words = text.text.split_inclusive(' ');
                words.map(|word| Chunk::Text { index, delta: word.to_owned() }).collect()
            }
            other => vec![Chunk::Block { index, block: other.clone() }],
        };
        chunks.push(Chunk::End { index });
        chunks
    })
}

fn prompt_tokens(req: &ModelRequest) -> u64 {
    let system = req.system.as_ref().map_or(0, |system| ApproximateCounter.text(&system.text()));
    let messages: u64 = req.messages.iter().map(|message| ApproximateCounter.message(message)).sum();
    system + messages + ApproximateCounter.tools(&req.tools)
}
