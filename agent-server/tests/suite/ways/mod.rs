//! One suite of claims for all ways of executing runs. PostgreSQL and Restate implement the same
//! contracts of queues and engines, which their conformance suites check.

mod control;
mod protocols;

use std::{future::pending, sync::Arc};

use agent::{
    AgentBuilder, SqliteJournal, Worker,
    dispatch::MemoryRelay,
    journal::{Journal, MemoryJournal},
    store::MemoryQueue,
};
use agent_server::{Files, MemoryFiles, Server, shape};
use tokio::task::JoinSet;

use crate::server::{
    support::{Client, Serving},
    webhooks::webhooks,
};

/// Way of executing runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In the server's process, with a store in memory.
    Memory,
    /// In the server's process, with a store in SQLite.
    Sqlite,
    /// On a worker with a queue; the store is in SQLite.
    Queue,
}

/// Server, and what executes its runs.
struct Stage {
    serving: Serving,
    _workers: JoinSet<()>,
    _dir: tempfile::TempDir,
}

impl Stage {
    fn client(&self) -> Client {
        self.serving.client()
    }
}

impl Way {
    /// Serves an agent; `agent` builds it for each process.
    async fn serve(self, agent: impl Fn() -> AgentBuilder) -> Stage {
        let dir = tempfile::tempdir().expect("a directory");
        let (files, mut workers) = (Files::new(MemoryFiles::default()), JoinSet::new());
        let journal: Arc<dyn Journal> = match self {
            Self::Memory => Arc::new(MemoryJournal::default()),
            Self::Sqlite | Self::Queue => Arc::new(SqliteJournal::open(dir.path().join("runs.db")).expect("a journal")),
        };
        let front = agent().store(journal.clone()).build().expect("an agent");
        let mut server = Server::builder().agent(front).files(files.clone()).webhooks(webhooks());
        if self == Self::Queue {
            let (queue, relay) = (Arc::new(MemoryQueue::default()), Arc::new(MemoryRelay::default()));
            server = server.queue(queue.clone()).relay(relay.clone());
            let agent = files.attach(agent().store(journal)).build().expect("an agent");
            let worker = Worker::builder(queue).agent(agent.clone()).relay(relay);
            let worker = worker.shape(move |job, request| shape(job, &agent, request)).build().expect("a worker");
            workers.spawn(async move {
                worker.run_until(pending()).await;
            });
        }
        Stage { serving: Serving::new(server).await, _workers: workers, _dir: dir }
    }
}

/// Makes a test of each claim for each way.
macro_rules! claims {
    ($($claim:ident)*) => {
        $(mod $claim {
            use crate::ways::Way;

            #[tokio::test]
            async fn in_memory() {
                super::$claim(Way::Memory).await;
            }

            #[tokio::test]
            async fn with_sqlite() {
                super::$claim(Way::Sqlite).await;
            }

            #[tokio::test]
            async fn on_a_worker() {
                super::$claim(Way::Queue).await;
            }
        })*
    };
}
use claims;
