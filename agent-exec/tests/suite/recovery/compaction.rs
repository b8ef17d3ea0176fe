//! A conversation that is compacted with summaries by a model, while its process dies.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use agent_core::{
    AssistantMessage, Block, Effect, Error, ErrorKind, Finished, Journal, MemoryJournal, Model, ModelInfo,
    ModelRequest, ModelResponse, Result, RunRequest, TokenCounter, Tool, Usage, async_trait, journal::EntryBody,
    model::ApproximateCounter, testing::MortalJournal,
};
use agent_exec::Agent;
use agent_middleware::{
    ContextCompaction,
    archive::SessionArchive,
    compaction::{Keep, Summary, Trigger},
};
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

use super::world::SESSION;

/// Number of calls of both models, in all processes.
#[derive(Clone, Default)]
struct Asked {
    own: Arc<AtomicU64>,
    notes: Arc<AtomicU64>,
}

/// Reads page after page. It depends only on the size of the conversation, since there is always
/// less of it than was said.
struct Reader(Asked);

const PAGES: u32 = 8;
/// Maximum number of tokens of a prompt.
const FITS: u64 = 300;

#[async_trait]
impl Model for Reader {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("reader").with_context_window(100_000)
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        self.0.own.fetch_add(1, Ordering::Relaxed);
        let size = ApproximateCounter.history(&req.messages);
        if size > FITS {
            return Err(Error::new(ErrorKind::ContextOverflow, "prompt is too long"));
        }
        let step = req.cx.step();
        let message = match step <= PAGES {
            true => AssistantMessage::new(vec![Block::tool_call("c", "read", json!({"page": step}).to_string())]),
            false => AssistantMessage::from("read"),
        };
        Ok(ModelResponse::new(message).with_usage(Usage::new(size, 2)))
    }
}

/// Summarises its input.
struct Notes(Asked);

#[async_trait]
impl Model for Notes {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("notes")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        self.0.notes.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        let asked = req.messages.last().map(agent_core::Message::text).unwrap_or_default();
        let page = asked.rsplit("page ").next().and_then(|rest| rest.split(':').next()).unwrap_or_default().to_owned();
        Ok(ModelResponse::new(format!("Up to page {page}: nothing.").as_str()).with_usage(Usage::new(30, 4)))
    }
}

fn read() -> impl Tool {
    let schema = json!({"type": "object", "properties": {"page": {"type": "integer"}}});
    let read = from_schema("read", "Reads a page.", schema, |args: Value, _| async move {
        Ok::<_, std::convert::Infallible>(json!(format!("page {}: {}", args["page"], "word ".repeat(60))))
    });
    read.with_options(|options| options.effect(Effect::Pure))
}

/// Builds the agent anew, as each process does. With `refused`, nothing is compacted before the
/// provider refuses a prompt.
fn agent(store: impl Journal, asked: &Asked, refused: bool) -> Agent {
    let summary = || Summary::new(Notes(asked.clone())).keep(Keep::Iterations(1));
    let compaction = ContextCompaction::builder().archive(SessionArchive::new());
    let compaction = match refused {
        true => compaction.trigger(Trigger::Never).emergency(summary()),
        false => compaction.trigger(Trigger::Messages(6)).strategy(summary()),
    };
    Agent::builder("reader", Reader(asked.clone()))
        .tool(read())
        .middleware(compaction.build().expect("sound"))
        .store(store)
        .build()
        .expect("builds")
}

async fn goes_on(store: impl Journal, asked: &Asked, refused: bool) -> Finished {
    let agent = agent(store, asked, refused);
    let request = match agent.unfinished(SESSION).await.expect("reads") {
        Some(_) => RunRequest::recover(SESSION, []),
        // it died before the run was journalled
        None => RunRequest::user("Read the book.").session(SESSION),
    };
    agent.start(request).await.expect("does not fail").finished().expect("finishes")
}

/// Returns the number of entries of a kind.
async fn count(journal: &MemoryJournal, of: fn(&EntryBody) -> bool) -> u64 {
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads");
    entries.iter().filter(|entry| of(&entry.body)).count() as u64
}

async fn dies_everywhere(refused: bool) {
    let (journal, asked) = (MemoryJournal::default(), Asked::default());
    let whole = goes_on(journal.clone(), &asked, refused).await;
    let (once, own) = (asked.notes.load(Ordering::Relaxed), asked.own.load(Ordering::Relaxed));
    assert!(once > 1, "summed up {once} times");
    let replaced = count(&journal, |body| matches!(body, EntryBody::HistoryReplaced { .. })).await;
    assert_eq!((replaced, &*whole.answer), (once, "read"));
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads").len() as u64;
    let mut again = 0;
    for dies_at in 1..=entries {
        let (journal, asked) = (MemoryJournal::default(), Asked::default());
        let mortal = MortalJournal::new(journal.clone()).dying_at(dies_at);
        let first = agent(mortal.clone(), &asked, refused);
        tokio::select! {
            biased;
            () = mortal.died() => {}
            end = first.start(RunRequest::user("Read the book.").session(SESSION)) => panic!("it lived: {end:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await; // its aborted tasks are gone
        let notes_before = asked.notes.load(Ordering::Relaxed);
        let kept = count(&journal, |body| matches!(body, EntryBody::Decided { .. })).await;
        let end = goes_on(journal.clone(), &asked, refused).await;
        assert_eq!(end.history, whole.history, "died at {dies_at}");
        assert_eq!((&end.answer, end.steps), (&whole.answer, whole.steps), "died at {dies_at}");
        let view = journal.index(SESSION).await.expect("folds").look(|index| index.view("reader"));
        assert_eq!(view.history, end.history, "died at {dies_at}");

        // Recorded summaries are not requested again; unrecorded ones are requested once more.
        let (notes, own_now) = (asked.notes.load(Ordering::Relaxed), asked.own.load(Ordering::Relaxed));
        assert_eq!(notes, once + (notes_before - kept), "died at {dies_at}");
        assert!(notes_before - kept <= 1 && own_now <= own + 2, "died at {dies_at}: {own_now} of {own}");
        // Recorded usage is part of the run's usage, however often the models were called.
        let told = count(&journal, |body| matches!(body, EntryBody::SideModelFinished { .. })).await;
        let mut usage = whole.usage;
        for _ in once..told {
            usage += Usage::new(30, 4);
        }
        assert_eq!(end.usage, usage, "died at {dies_at}");
        again += notes - once;
    }
    // Only a death between a summary and the end of its entries costs another one.
    assert!(again <= 3 * once, "of {entries} deaths, {again} cost a summary");
}

#[tokio::test(start_paused = true)]
async fn a_compacting_run_that_died_at_any_entry_ends_as_one_that_did_not() {
    dies_everywhere(false).await;
}

#[tokio::test(start_paused = true)]
async fn so_does_one_whose_prompts_the_provider_refused() {
    dies_everywhere(true).await;
}
