//! Active middlewares: they take a model, a store or a limit that is soon reached.

use std::time::Duration;

use agent_core::{Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, Usage, async_trait};
use agent_middleware::{
    ChatHistory, ContextCompaction, Judge, LongTermMemory, LongToolOutput, ToolRetry, ToolSelector,
    archive::SessionArchive,
    compaction::{ClearToolResults, Keep, SlidingWindow, Strategy, Summary, Trigger},
    memory::{KeepOfRun, MemoryScope},
};
use agent_store::{InMemoryChatMessageStore, InMemoryMemoryStore};

use super::builtins::conforms;

/// A model whose response is a function of its input, and so the same in every process.
#[derive(Clone, Copy)]
struct Says(fn(&str) -> &'static str);

#[async_trait]
impl Model for Says {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("says")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let asked: String = req.messages.iter().map(Message::text).collect();
        tokio::task::yield_now().await;
        Ok(ModelResponse::new((self.0)(&asked)).with_usage(Usage::new(3, 1)))
    }
}

#[tokio::test(start_paused = true)]
async fn tools_are_tried_again() {
    conforms(|| ToolRetry::new().unknown().initial_delay(Duration::from_millis(20))).await;
}

/// Checks a compaction that starts as soon as there is something to remove.
async fn compacts<S: Strategy>(strategy: impl Fn() -> S + Send + Sync + 'static, archive: bool) {
    conforms(move || {
        let builder = ContextCompaction::builder().trigger(Trigger::Messages(4)).strategy(strategy()).on_request();
        let builder = if archive { builder.archive(SessionArchive::new()) } else { builder };
        builder.build().expect("sound")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn results_that_are_old_are_cleared() {
    compacts(|| ClearToolResults::new().keep(Keep::Iterations(0)).placeholder("-"), false).await;
}

#[tokio::test(start_paused = true)]
async fn turns_that_are_old_are_dropped() {
    compacts(|| SlidingWindow::new(1), false).await;
}

/// Checks summaries of conversations whose beginning is archived or not.
async fn sums_up(archive: bool) {
    let notes = Says(|asked| if asked.contains("42") { "It was 42." } else { "Nothing." });
    compacts(move || Summary::new(notes).keep(Keep::Iterations(1)), archive).await;
}

#[tokio::test(start_paused = true)]
async fn conversations_are_summed_up() {
    sums_up(false).await;
}

#[tokio::test(start_paused = true)]
async fn conversations_are_summed_up_and_archived() {
    sums_up(true).await;
}

#[tokio::test(start_paused = true)]
async fn long_outputs_are_shortened() {
    let short = || LongToolOutput::builder().max_chars(6).show(2, 2);
    conforms(move || short().build().expect("sound")).await;
    conforms(move || short().archive(SessionArchive::new()).build().expect("sound")).await;
}

#[tokio::test(start_paused = true)]
async fn answers_are_sent_back() {
    let verdict = Says(|asked| match asked.contains("was looked at before") {
        true => r#"{"verdict": "stop"}"#,
        false => r#"{"verdict": "continue", "feedback": "Say why."}"#,
    });
    conforms(move || Judge::new(verdict)).await;
    let critique =
        Says(|asked| if asked.contains("was looked at before") { "NOTHING TO IMPROVE" } else { "Too short." });
    conforms(move || Judge::critic(critique).max_rounds(3)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_said_elsewhere_is_remembered() {
    let memories = InMemoryMemoryStore::default();
    let remembers = move || LongTermMemory::new(memories.clone()).user("ada").scope(MemoryScope::Session);
    conforms(remembers.clone()).await;
    conforms(move || remembers().tool().facts_with(Says(|_| r#"["The answer is 42."]"#))).await;
    let memories = InMemoryMemoryStore::default();
    let known = agent_retrieval::memory::Memory::new("Ada wants it exact.");
    agent_retrieval::memory::MemoryStore::add(&memories, "ada", vec![known]).await.expect("kept");
    conforms(move || LongTermMemory::new(memories.clone()).user("ada").keep(KeepOfRun::Nothing)).await;
    let chats = InMemoryChatMessageStore::default();
    conforms(move || ChatHistory::new(chats.clone())).await;
}

#[tokio::test(start_paused = true)]
async fn tools_are_picked() {
    conforms(|| ToolSelector::new(Says(|_| r#"["look"]"#)).max_tools(1)).await;
    let first = |_: &ModelRequest, tools: &[&agent_core::ToolSpec]| vec![tools[0].name.clone()];
    conforms(move || ToolSelector::by(first).max_tools(1).always_include("confirm").once_per_run()).await;
}
