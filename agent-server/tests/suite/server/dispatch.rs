//! A server that dispatches all runs to another execution backend.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use agent::{
    Agent, AgentBuilder, Error, ErrorKind, Result, Retry, RunEnd, RunHandle, RunRequest, SqliteJournal, Worker,
    async_trait,
    dispatch::{
        Claim, Claimed, Dispatch, Dispatched, Job, JobStatus, Outcome, Queue, QueueAdmin, RunAddress, Signal, Wanted,
    },
    journal::{Entry, Journal, JournalWriter, MemoryJournal},
    middleware::Approval,
    run::Answer,
    store::MemoryQueue,
    testing::{ScriptedModel, Turn},
};
use agent_server::{Server, answer_of, request_of};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle};

use super::support::{Client, Gated, Serving, call, frames, refund};

/// Backend that runs jobs in tasks, like remote workers.
struct Workers {
    agent: Agent,
    jobs: Mutex<HashMap<Arc<str>, UnderWay>>,
}

/// Active job with its run.
type UnderWay = (Job, RunHandle, JoinHandle<Result<RunEnd>>);

impl Workers {
    fn new(agent: Agent) -> Arc<Self> {
        Arc::new(Self { agent, jobs: Mutex::default() })
    }

    /// Runs the job in a task, and waits until it is in the journal.
    async fn run(&self, job: Job, request: RunRequest) {
        let run = self.agent.start(request);
        let (handle, mut events) = (run.handle(), run.handle().events());
        let task = tokio::spawn(run);
        self.jobs.lock().expect("jobs").insert(job.at.run.clone(), (job, handle, task));
        while events.next().await.is_some_and(|event| event.position.after != 0) {}
    }

    fn job(&self, run: &str) -> Option<(Job, RunHandle)> {
        self.jobs.lock().expect("jobs").get(run).map(|(job, handle, _)| (job.clone(), handle.clone()))
    }
}

#[async_trait]
impl Dispatch for Workers {
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        if self.job(&job.at.run).is_some() {
            return Ok(Dispatched::Known);
        }
        let request = request_of(&job, &self.agent)?;
        self.run(job, request).await;
        Ok(Dispatched::New)
    }

    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()> {
        let (job, _) = self.job(&run.run).ok_or_else(|| Error::new(ErrorKind::Stale, "nobody knows that run"))?;
        let request = answer_of(&job, &self.agent, answers)?;
        self.run(job, request).await;
        Ok(())
    }

    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool> {
        let Some((_, handle)) = self.job(&run.run) else { return Ok(false) };
        match signal {
            Signal::Cancel => handle.cancel(),
            Signal::Pause => handle.pause(),
            Signal::Steer(message) => return Ok(handle.steer(message).is_ok()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>> {
        Ok(self.jobs.lock().expect("jobs").get(&run.run).map(|(.., task)| match task.is_finished() {
            true => JobStatus::AtRest,
            false => JobStatus::Running { worker: "here".into() },
        }))
    }
}

/// Backend that accepts jobs and runs none.
#[derive(Default)]
struct Taker(Mutex<Vec<Job>>);

#[async_trait]
impl Dispatch for Taker {
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        self.0.lock().expect("jobs").push(job);
        Ok(Dispatched::New)
    }

    async fn answer(&self, _: &RunAddress, _: BTreeMap<String, Answer>) -> Result<()> {
        Err(Error::new(ErrorKind::Stale, "it asks nothing"))
    }

    async fn signal(&self, _: &RunAddress, _: Signal) -> Result<bool> {
        Ok(false)
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>> {
        Ok(self.0.lock().expect("jobs").iter().any(|job| job.at == *run).then_some(JobStatus::Queued))
    }
}

/// Store that is read-only for this process.
struct OnlyRead(MemoryJournal);

#[async_trait]
impl Journal for OnlyRead {
    async fn open(&self, _: &str, _: &str) -> Result<Arc<dyn JournalWriter>> {
        Err(Error::config("others write here"))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.0.read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.0.sessions().await
    }

    async fn delete(&self, _: &str) -> Result<bool> {
        Err(Error::config("others write here"))
    }
}

#[tokio::test]
async fn a_run_that_was_handed_over_is_found_before_it_begins_and_nothing_is_written_of_it() {
    let agents =
        ["support", "other"].map(|name| Agent::builder(name, ScriptedModel::new([])).build().expect("an agent"));
    let server = Server::builder().agents(agents).store(OnlyRead(MemoryJournal::default()));
    let serving = Serving::new(server.dispatch(Arc::new(Taker::default()))).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Hi.", "session": "s"})).await;
    assert_eq!(run["status"], "queued", "{run}");
    let found = client.get(&format!("/api/runs/{}", run["run"].as_str().expect("an id"))).await;
    assert!(found.text.contains("\"agent\":\"support\"") && found.text.contains("queued"), "{}", found.text);
    assert_eq!(client.get("/api/runs/nobody.cw").await.status, 404);
}

#[tokio::test]
async fn runs_are_started_answered_and_followed_where_nothing_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let agent = |turns: Vec<Turn>| {
        Agent::builder("support", ScriptedModel::new(turns)).tool(refund).middleware(Approval::new().ask("refund"))
    };
    let of_workers = agent(vec![call("c1", "A-1"), Turn::text("Refunded.")]).store(journal.clone());
    let workers = Workers::new(of_workers.build().expect("an agent"));
    let front = agent(Vec::new()).build().expect("an agent");
    let serving = Serving::new(Server::builder().agent(front).store(journal).dispatch(workers)).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Refund A-1.", "session": "s"})).await;
    let asked = client.rest(&run).await;
    assert_eq!(asked["status"], "waiting", "{asked}");
    let id = run["run"].as_str().expect("an id");
    let answers = json!({"answers": [{"question": asked["questions"][0]["id"], "allow": true}]});
    let answered = client.post(&format!("/api/runs/{id}/answers"), &answers).await;
    assert_eq!(answered.status, 202, "{}", answered.text);
    let told = frames(&client.get(&format!("/api/runs/{id}/events")).await.text);
    assert_eq!(told.last().expect("an end").data["answer"], "Refunded.");
    let listed = async |query: &str| client.get(&format!("/api/runs?{query}")).await.json()["runs"].clone();
    let second = client.start(&json!({"input": "Hi."})).await;
    let all = listed("").await;
    assert_eq!((&all[0]["run"], &all[1]["run"], &all[1]["status"]), (&second["run"], &run["run"], &json!("finished")));
    assert_eq!(listed("session=s").await.as_array().map(Vec::len), Some(1));
    assert_eq!(listed("limit=1").await.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn what_waits_in_a_queue_is_listed_for_its_tenant() {
    let agent = Agent::builder("support", ScriptedModel::new([])).build().expect("an agent");
    let queue = Arc::new(MemoryQueue::default());
    let of_others = Job::new("support", &RunRequest::user("Hi.").session("kettles/s")).expect("a job");
    queue.dispatch(of_others.tenant("kettles")).await.expect("it is taken");
    let serving = Serving::new(Server::builder().agent(agent).queue(queue)).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Hi."})).await;
    let listed = client.get("/api/runs").await.json();
    assert_eq!((&listed["runs"][0]["run"], &listed["runs"][0]["status"]), (&run["run"], &json!("queued")));
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1), "{listed}");
}

fn two_agents() -> [Agent; 2] {
    let model = || ScriptedModel::new([Turn::text("One."), Turn::text("Two.")]);
    ["support", "other"].map(|name| Agent::builder(name, model()).build().expect("an agent"))
}

/// Starts a run of one agent in the session `garden`, and then two of the other one.
async fn start_three(client: &Client) -> Value {
    let first = client.start(&json!({"input": "Hi.", "session": "garden"})).await;
    for _ in 0..2 {
        let other = client.post("/api/agents/other/runs", &json!({"input": "Hi."})).await;
        assert_eq!(other.status, 202, "{}", other.text);
    }
    first
}

/// Checks that the first run is listed, though later ones fill the list.
async fn assert_found(client: &Client, first: &Value) {
    for query in ["agent=support&limit=1", "session=garden&limit=1", "agent=support", "session=garden&agent=support"] {
        let listed = client.get(&format!("/api/runs?{query}")).await.json();
        let runs: Vec<_> = listed["runs"].as_array().expect("a list").iter().map(|run| &run["run"]).collect();
        assert_eq!(runs, [&first["run"]], "{query}");
    }
    let none = client.get("/api/runs?session=garden&agent=other").await.json();
    assert_eq!(none["runs"], json!([]));
}

#[tokio::test]
async fn a_list_of_one_agents_runs_is_not_shorter_for_those_of_others() {
    let journal = MemoryJournal::default();
    let here = Serving::new(Server::builder().agents(two_agents()).store(journal.clone())).await;
    let first = start_three(&here.client()).await;
    assert_found(&here.client(), &first).await;

    let front = Server::builder().agents(two_agents()).store(journal).dispatch(Arc::new(Taker::default()));
    assert_found(&Serving::new(front).await.client(), &first).await;

    let queue = Server::builder().agents(two_agents()).queue(Arc::new(MemoryQueue::default()));
    let queue = Serving::new(queue).await;
    let first = start_three(&queue.client()).await;
    assert_found(&queue.client(), &first).await;
}

#[tokio::test]
async fn a_run_elsewhere_is_told_to_stop() {
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let of_workers = Agent::builder("support", Gated::new([])).store(journal.clone()).build().expect("an agent");
    let front = Agent::builder("support", ScriptedModel::new([])).build().expect("an agent");
    let server = Server::builder().agent(front).store(journal).dispatch(Workers::new(of_workers));
    let serving = Serving::new(server).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Hi."})).await;
    assert_eq!(run["status"], "running", "{run}");
    let cancelled = client.post(&format!("/api/runs/{}/cancel", run["run"].as_str().expect("an id")), &json!({})).await;
    assert_eq!(cancelled.status, 202, "{}", cancelled.text);
    assert_eq!(client.rest(&run).await["status"], "cancelled");
}

/// A server with a queue, and the store that its workers share.
pub(crate) struct Queued {
    pub(crate) queue: Arc<MemoryQueue>,
    pub(crate) journal: MemoryJournal,
    pub(crate) serving: Serving,
}

impl Queued {
    pub(crate) async fn new() -> Self {
        let (queue, journal) = (Arc::new(MemoryQueue::default()), MemoryJournal::default());
        let front = agent_of(Vec::new()).build().expect("an agent");
        let serving = Serving::new(Server::builder().agent(front).store(journal.clone()).queue(queue.clone())).await;
        Self { queue, journal, serving }
    }

    /// Starts a worker, which ends on a signal.
    pub(crate) fn worker(&self, turns: Vec<Turn>) -> (oneshot::Sender<()>, JoinHandle<()>) {
        let agent = agent_of(turns).store(self.journal.clone()).build().expect("an agent");
        let worker = Worker::builder(self.queue.clone()).agent(agent);
        let worker = worker.shape(move |job, request| Ok(request.streaming(job.stream.unwrap_or(false)))).build();
        let (end, ends) = oneshot::channel();
        let working = tokio::spawn(async move {
            worker.expect("a worker").run_until(async { drop(ends.await) }).await;
        });
        (end, working)
    }
}

/// Claims the next run, begins it, and dies.
pub(crate) async fn dies_with_one(queue: &dyn Queue, journal: &MemoryJournal) -> Claimed {
    let claim = Claim::new("dies", ["support".into()], Duration::from_secs(600));
    let claimed = queue.claim(&claim).await.expect("works").expect("there is one");
    let agent = Agent::builder("support", Gated::new([])).store(journal.clone()).build().expect("an agent");
    let run = agent.start(claimed.job.request());
    let mut events = run.handle().events();
    let task = tokio::spawn(run);
    while events.next().await.is_some_and(|event| event.position.after != 0) {}
    task.abort();
    drop(task.await);
    claimed
}

/// Lets the lease expire until the job is a dead letter.
pub(crate) async fn give_up(queue: &dyn Queue, claimed: &Claimed) {
    let outcome = Outcome::Dead { error: "it was tried 5 times".into() };
    assert!(queue.release(claimed.receipt, outcome, &[], true).await.expect("works"));
}

fn agent_of(turns: Vec<Turn>) -> AgentBuilder {
    Agent::builder("support", ScriptedModel::new(turns)).tool(refund).middleware(Approval::new().ask("refund"))
}

#[tokio::test]
async fn a_run_that_a_worker_puts_back_as_it_ends_is_not_at_rest_for_those_who_watch() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let (end, ended) = queued.worker(vec![call("c1", "A-1").delay(Duration::from_secs(3))]);
    let run = client.start(&json!({"input": "Hi."})).await;
    let id = run["run"].as_str().expect("an id").to_owned();
    while client.get(&format!("/api/runs/{id}")).await.json()["status"] != "running" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let watching = tokio::spawn({
        let (client, id) = (queued.serving.client(), id.clone());
        async move { frames(&client.get(&format!("/api/runs/{id}/events")).await.text).pop() }
    });
    end.send(()).expect("it works");
    ended.await.expect("no panic");
    assert_eq!(client.get(&format!("/api/runs/{id}")).await.json()["status"], "queued");
    let _heir = queued.worker(Vec::new());
    assert_eq!(client.rest(&run).await["status"], "waiting");
    let last = frames(&client.get(&format!("/api/runs/{id}/events")).await.text).pop();
    assert_eq!(watching.await.expect("no panic"), last, "it was told all");
}

#[tokio::test]
async fn a_run_that_failed_for_the_moment_is_not_over_for_those_who_watch() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let busy = || Error::new(ErrorKind::Overloaded, "no capacity").with_retry(Retry::Temporary(None));
    let _worker = queued.worker(vec![Turn::error(busy), Turn::text("Done.")]);
    let run = client.start(&json!({"input": "Hi."})).await;
    let rested = client.rest(&run).await;
    assert_eq!((&rested["status"], &rested["answer"]), (&json!("finished"), &json!("Done.")), "{rested}");
}

#[tokio::test]
async fn a_run_that_waits_elsewhere_is_cancelled_by_whoever_runs_it() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let _worker = queued.worker(vec![call("c1", "A-1"), Turn::text("gone on")]);
    let run = client.start(&json!({"input": "Refund A-1."})).await;
    assert_eq!(client.rest(&run).await["status"], "waiting");
    let cancelled = client.post(&format!("/api/runs/{}/cancel", run["run"].as_str().expect("an id")), &json!({})).await;
    assert_eq!(cancelled.status, 202, "{}", cancelled.text);
    assert_eq!(client.rest(&run).await["status"], "cancelled");
    let jobs = queued.queue.jobs(&Wanted::default()).await.expect("lists");
    assert_eq!(jobs[0].standing, JobStatus::Done);
}

/// Although its journal does not contain its end.
#[tokio::test]
async fn a_run_that_was_given_up_is_at_rest_for_those_who_watch_and_so_is_one_that_was_dropped_or_paused() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    for (now, status, error) in [
        ("given up", "failed", json!("it was tried 5 times")),
        ("dropped", "stopped", Value::Null),
        ("paused", "stopped", Value::Null),
    ] {
        let run = client.start(&json!({"input": "Hi."})).await;
        let id = run["run"].as_str().expect("an id").to_owned();
        let claimed = dies_with_one(&*queued.queue, &queued.journal).await;
        let watching = tokio::spawn({
            let (client, path) = (queued.serving.client(), format!("/api/runs/{id}/events"));
            async move { frames(&client.get(&path).await.text).pop().expect("an end") }
        });
        let waiting = tokio::spawn({
            let (client, run) = (queued.serving.client(), run.clone());
            async move { client.rest(&run).await }
        });
        assert_eq!(client.get(&format!("/api/runs/{id}?wait=1")).await.json()["status"], "running");
        let at = &claimed.job.at;
        if now == "paused" {
            let later = Outcome::Later { after: Duration::from_secs(600), error: None };
            assert!(queued.queue.release(claimed.receipt, later, &[], true).await.expect("works"));
            assert!(queued.queue.signal(at, Signal::Pause).await.expect("works"));
        } else {
            give_up(&*queued.queue, &claimed).await;
        }
        if now == "dropped" {
            assert!(queued.queue.remove(at).await.expect("works"));
        }
        let rested = tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it rests").expect("no panic");
        assert_eq!((&rested["status"], &rested["error"]), (&json!(status), &error), "{rested}");
        let end = tokio::time::timeout(Duration::from_secs(20), watching).await.expect("it ends").expect("no panic");
        assert_eq!((end.event.as_deref(), &end.data["status"]), (Some("end"), &json!(status)));
        let again = frames(&client.get(&format!("/api/runs/{id}/events")).await.text).pop();
        assert_eq!(again.expect("an end").data["status"], status, "whoever comes later is not kept waiting either");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_hold_is_refused_at_once_and_leaves_those_alone_that_wait() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let both = call("c1", "A-1").and_call("c2", "refund", json!({"number": "A-2"}));
    let (end, ended) = queued.worker(vec![both]);
    let run = client.start(&json!({"input": "Refund both."})).await;
    assert_eq!(client.rest(&run).await["questions"].as_array().map(Vec::len), Some(2));
    end.send(()).expect("it works");
    ended.await.expect("no panic");
    let path = format!("/api/runs/{}/answers", run["run"].as_str().expect("an id"));
    let answer = async |answer: Value| client.post(&path, &json!({"answers": [answer]})).await;
    assert_eq!(answer(json!({"question": "c1/approval", "allow": true})).await.status, 202);
    for bad in [
        json!({"question": "c2/approval", "value": {"decision": 7}}),
        json!({"question": "c1/approval", "allow": false, "digest": "of another question"}),
    ] {
        let refused = answer(bad).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "answer_refused"), "{}", refused.text);
    }
    let _heir = queued.worker(vec![Turn::text("Refunded.")]);
    while client.rest(&run).await["questions"].as_array().map(Vec::len) != Some(1) {}
    assert_eq!(client.rest(&run).await["questions"][0]["id"], "c2/approval", "the first one's was taken");
    assert_eq!(answer(json!({"question": "c2/approval", "allow": true})).await.status, 202);
    assert_eq!(client.rest(&run).await["answer"], "Refunded.");
}

/// A retry does not resume it either.
#[tokio::test]
async fn a_run_that_was_given_up_as_it_waited_is_cancelled_and_asks_nothing_any_more() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let (end, ended) = queued.worker(vec![call("c1", "A-1")]);
    let run = client.start(&json!({"input": "Refund A-1."})).await;
    assert_eq!(client.rest(&run).await["status"], "waiting");
    end.send(()).expect("it works");
    ended.await.expect("no panic");
    let path = format!("/api/runs/{}", run["run"].as_str().expect("an id"));
    let answers = json!({"answers": [{"question": "c1/approval", "allow": true}]});
    assert_eq!(client.post(&format!("{path}/answers"), &answers).await.status, 202);
    let claim = Claim::new("changed", ["support".into()], Duration::from_secs(600));
    let claimed = queued.queue.claim(&claim).await.expect("works").expect("there is one");
    give_up(&*queued.queue, &claimed).await;
    assert_eq!(client.rest(&run).await["status"], "failed");
    assert_eq!(client.post(&format!("{path}/cancel"), &json!({})).await.status, 202);
    assert_eq!(client.get("/api/questions").await.json()["questions"], json!([]));
    assert!(queued.queue.retry(&claimed.job.at).await.expect("works"));
    let _heir = queued.worker(vec![Turn::text("Refunded.")]);
    assert_eq!(client.rest(&run).await["status"], "cancelled");
}
