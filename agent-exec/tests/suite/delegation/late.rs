//! Sub-agents that do not return their checkpoints in time, because the journal is slow.

use std::sync::{Arc, Mutex};

use agent_core::{
    BoxFuture, Journal, MemoryJournal, Result, RunEnd, RunRequest, ToolOutput, ToolRequest, async_trait,
    journal::{Ack, Entry, JournalWriter},
};

use super::*;
use crate::common::{Log, finished, ms, stopped};

/// A journal that acknowledges durability late.
#[derive(Clone, Default)]
struct SlowJournal(MemoryJournal);

struct SlowWriter(Arc<dyn JournalWriter>);

#[async_trait]
impl Journal for SlowJournal {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(SlowWriter(self.0.open(session, agent).await?)))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.0.read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.0.sessions().await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.0.delete(session).await
    }
}

impl JournalWriter for SlowWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        let ack = self.0.append(entries);
        Ack::Later(Box::pin(async {
            tokio::time::sleep(ms(100)).await;
            ack.await
        }))
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        self.0.verify_lease()
    }
}

/// Retains the requests of its calls, as a user's tool might.
type Kept = Arc<Mutex<Vec<ToolRequest>>>;

/// Builds a boss whose helper pays, which must not happen twice, and then waits forever.
fn tree(journal: &SlowJournal, log: &Log, kept: &Kept, background: bool) -> Agent {
    let (paid, kept) = (log.clone(), kept.clone());
    let pay = tool("pay", move |req| {
        paid.note("paid");
        kept.lock().expect("no panic").push(req);
        async { Ok(ToolOutput::text("paid")) }
    });
    let waits = log.clone();
    let wait = tool("wait", move |_| {
        let first = !waits.seen().contains(&"waits".to_owned());
        waits.note("waits");
        async move {
            if first {
                std::future::pending::<()>().await;
            }
            Ok(ToolOutput::text("it came"))
        }
    });
    let helper = thinks(|spoke, _| match spoke {
        0 => call("p", "pay", json!({})),
        1 => call("w", "wait", json!({})),
        _ => "helped".into(),
    });
    let helper = built(Agent::builder("helper", helper).tool(pay).tool(wait.repeatable()));
    let boss_says = thinks(move |spoke, _| match spoke {
        0 => ask("a", "help", json!({"background": background})),
        1 if background => "I wait.".into(),
        _ => "done".into(),
    });
    built(boss(boss_says, helper).store(journal.clone()))
}

async fn cancelled(agent: &Agent, log: &Log) -> Result<RunEnd> {
    let run = agent.start(RunRequest::user("go").session("s"));
    let handle = run.handle();
    let (end, ()) = tokio::join!(run, async {
        while !log.seen().iter().any(|line| line == "waits") {
            tokio::time::sleep(ms(1)).await;
        }
        handle.cancel();
    });
    end
}

#[tokio::test(start_paused = true)]
async fn what_a_sub_agent_did_that_was_too_late_to_say_so_is_in_the_checkpoint_and_not_done_again() {
    for background in [false, true] {
        let (journal, log, kept) = (SlowJournal::default(), Log::default(), Kept::default());
        let agent = tree(&journal, &log, &kept, background);
        let (how, checkpoint) = stopped(cancelled(&agent, &log).await);
        assert_eq!(how, "cancelled");
        assert_eq!(checkpoint.tree_usage.calls, if background { 4 } else { 3 }, "{background}");
        let end = finished(agent.start(RunRequest::resume(checkpoint, [])).await);
        assert_eq!(end.answer, "done", "{background}");
        let paid = log.seen().iter().filter(|line| *line == "paid").count();
        assert_eq!(paid, 1, "{background}: {:?}", log.seen());
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_free_when_its_run_is_over_whoever_kept_a_context_of_a_sub_agent_that_was_dropped() {
    let (journal, log, kept) = (SlowJournal::default(), Log::default(), Kept::default());
    let agent = tree(&journal, &log, &kept, false);
    stopped(cancelled(&agent, &log).await);
    assert_eq!(kept.lock().expect("no panic").len(), 1, "the tool keeps its context");
    drop(journal.open("s", "boss").await.expect("is free"));

    let run = agent.start(RunRequest::recover("s", []));
    tokio::select! {
        end = run => panic!("its journal is slow: {end:?}"),
        () = tokio::time::sleep(ms(1)) => {} // drops the run, as when its process is about to end
    }
    drop(journal.open("s", "boss").await.expect("is free"));
}
