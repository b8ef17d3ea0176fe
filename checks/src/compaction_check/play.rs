//! Replay of a transcript under the middleware, step by step.

use std::sync::{Arc, Mutex, PoisonError};

use agent::{
    AssistantMessage, Error, ErrorKind, Event, EventKind, Message, ModelRequest, ModelResponse, Usage,
    core::{
        History, ModelInfo, ModelService, TokenCounter,
        engine::{ModelHooksLayer, ModelWrapLayer},
        event::Compaction,
        middleware::Middlewares,
        model::{ApproximateCounter, PriceTable},
    },
    llm::{
        AnthropicCodec, AnthropicProfile, Catalogue, GeminiCodec, GeminiProfile, OpenAiChatCodec, OpenAiResponsesCodec,
        Profile, RequestReader, conformance::refusals,
    },
    middleware::{
        ContextCompaction,
        archive::MemoryArchive,
        compaction::{CachePrices, Strategy, Unit},
    },
    testing::detached_run,
};
use tower::{Layer, ServiceExt, service_fn};

use super::transcript::Transcript;

/// Replays transcripts at the prices of one model.
pub(crate) struct Player {
    model: String,
    prices: CachePrices,
    codecs: Arc<[Arc<dyn RequestReader>]>,
}

/// Result of a replay.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// Cost in millionths of a dollar.
    pub(crate) cost: f64,
    pub(crate) compactions: Vec<Compaction>,
    /// Number of prompts that were too long in spite of compaction.
    pub(crate) refused: usize,
    /// Reasons why a provider would reject a conversation.
    pub(crate) invalid: Vec<String>,
}

impl Player {
    pub(crate) fn new(model: &str, prices: CachePrices) -> Self {
        Self { model: model.to_owned(), prices, codecs: codecs().into() }
    }

    pub(crate) fn codecs(&self) -> &[Arc<dyn RequestReader>] {
        &self.codecs
    }

    /// Replays a transcript to its end, with a context window of `limit` times its length.
    pub(crate) async fn play(&self, transcript: &Transcript, limit: f64, strategy: Arc<dyn Strategy>) -> Played {
        let window = (ApproximateCounter.history(&transcript.history) as f64 * limit) as u64;
        let compaction =
            ContextCompaction::builder().max_tokens(window).strategy(strategy).archive(MemoryArchive::new());
        let Ok(compaction) = compaction.build() else { return Played::default() };
        let list: Middlewares = Arc::new([Arc::new(compaction)]);
        let run = detached_run(History::default());
        let provider = Arc::new(Mutex::new(Provider::new(self.prices, window, self.codecs.clone())));
        let compactions = Arc::new(Mutex::new(Vec::new()));
        let seen = compactions.clone();
        run.cx().attach(Arc::new(move |event: &Event| {
            if let EventKind::Compaction(compaction) = &event.kind {
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(compaction.clone());
            }
        }));
        let model = stack(&list, &provider);
        let mut played = Played::default();
        for unit in Unit::split(&transcript.history) {
            let Message::Assistant(answer) = unit.first() else {
                played.invalid.extend(run.push(unit.first().clone()).err().map(|e| e.to_string()));
                continue;
            };
            if !run.cx().history().is_empty() {
                run.next_step();
                let mut request = ModelRequest::new(run.cx().clone());
                request.model = Some(Arc::new(ModelInfo::new(&self.model)));
                played.refused += usize::from(model.clone().oneshot(request).await.is_err());
            }
            let pushed = run.push_turn(answer.clone(), unit.results());
            played.invalid.extend(pushed.err().map(|e| e.to_string()));
        }
        // Adds the usage of summaries.
        played.cost = Catalogue::builtin().cost(&self.model, &run.cx().usage()).unwrap_or_default() as f64;
        let mut provider = provider.lock().unwrap_or_else(PoisonError::into_inner);
        played.cost += provider.cost;
        played.invalid.append(&mut provider.invalid);
        played.compactions = std::mem::take(&mut *compactions.lock().unwrap_or_else(PoisonError::into_inner));
        played
    }
}

/// Composes the model stack as an executor does.
fn stack(list: &Middlewares, provider: &Arc<Mutex<Provider>>) -> ModelService {
    let provider = provider.clone();
    let answers = ModelService::new(service_fn(move |request: ModelRequest| {
        let answer = provider.lock().unwrap_or_else(PoisonError::into_inner).answer(&request);
        async move { answer }
    }));
    let wraps = ModelWrapLayer::new(list.clone()).layer(answers);
    ModelService::from_boxed(ModelHooksLayer::new(list.clone()).layer(ModelService::from_boxed(wraps)))
}

/// Provider with a limit and a cache of the last prompt.
struct Provider {
    prices: CachePrices,
    window: u64,
    codecs: Arc<[Arc<dyn RequestReader>]>,
    last: History,
    cost: f64,
    invalid: Vec<String>,
}

impl Provider {
    fn new(prices: CachePrices, window: u64, codecs: Arc<[Arc<dyn RequestReader>]>) -> Self {
        Self { prices, window, codecs, last: History::default(), cost: 0.0, invalid: Vec::new() }
    }

    fn answer(&mut self, request: &ModelRequest) -> Result<ModelResponse, Error> {
        let prompt = &request.messages;
        let all = ApproximateCounter.history(prompt);
        if all > self.window {
            return Err(Error::new(ErrorKind::ContextOverflow, "prompt is too long"));
        }
        let same = prompt.iter().zip(self.last.iter()).take_while(|(new, old)| new == old);
        let same: u64 = same.map(|(message, _)| ApproximateCounter.message(message)).sum();
        self.cost += same as f64 * self.prices.read + (all - same) as f64 * self.prices.write;
        if !prompt.continues(&self.last) {
            self.judge(request);
        }
        self.last = prompt.clone();
        let mut used = Usage::new(all - same, 0);
        used.cached = same;
        Ok(ModelResponse::new(AssistantMessage::from("ok")).with_usage(used))
    }

    /// Validates a compacted conversation: as a history, and on each wire.
    fn judge(&mut self, request: &ModelRequest) {
        let (_, repairs) = History::import(request.messages.iter().cloned());
        self.invalid.extend(repairs.iter().map(|repair| format!("{repair:?}")));
        for codec in self.codecs.iter() {
            let refused = refusals(&**codec, request);
            self.invalid.extend(refused.into_iter().map(|why| format!("{}: {why}", codec.origin().wire())));
        }
    }
}

fn codecs() -> Vec<Arc<dyn RequestReader>> {
    let openai = || Profile::compatible("any", "http://server.test/v1");
    let codecs: [agent::Result<Arc<dyn RequestReader>>; 4] = [
        OpenAiChatCodec::new("m", openai()).map(|codec| Arc::new(codec) as _),
        OpenAiResponsesCodec::new("m", openai()).map(|codec| Arc::new(codec) as _),
        AnthropicCodec::new("m", AnthropicProfile::compatible("any", "http://server.test"))
            .map(|codec| Arc::new(codec) as _),
        GeminiCodec::new("m", GeminiProfile::compatible("any", "http://server.test/v1beta"))
            .map(|codec| Arc::new(codec) as _),
    ];
    codecs.into_iter().flatten().collect()
}
