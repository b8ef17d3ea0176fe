//! Runs of workers with a queue, as the server shows and controls them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent::{
    Agent, Error, ErrorKind, Result, async_trait,
    dispatch::{Claim, Dispatch, Dispatched, Job, JobStatus, Queue, QueueAdmin, RunAddress, Signal, Wanted},
    journal::{Journal, MemoryJournal},
    middleware::Delegation,
    run::Answer,
    store::MemoryQueue,
    testing::{ScriptedModel, Turn},
};
use agent_server::Server;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{
    dispatch::{Queued, dies_with_one, give_up},
    support::{Gated, Serving, call},
    webhooks::{Receiver, webhooks},
};

fn path(run: &Value) -> String {
    format!("/api/runs/{}", run["run"].as_str().expect("an id"))
}

/// Returns the addresses of all jobs, newest first.
async fn jobs(queue: &MemoryQueue) -> Vec<RunAddress> {
    queue.jobs(&Wanted::default()).await.expect("lists").into_iter().map(|job| job.job.at).collect()
}

/// Starts a run that waits for an answer, and whose worker has died.
async fn waiting(queued: &Queued) -> Value {
    let (end, ended) = queued.worker(vec![call("c1", "A-1")]);
    let run = queued.serving.client().start(&json!({"input": "Refund A-1.", "session": "s"})).await;
    assert_eq!(queued.serving.client().rest(&run).await["status"], "waiting");
    end.send(()).expect("it works");
    ended.await.expect("no panic");
    run
}

#[tokio::test]
async fn a_session_that_is_deleted_takes_its_jobs_with_it() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let run = waiting(&queued).await;
    let other = client.start(&json!({"input": "Hi.", "session": "other"})).await;
    assert_eq!(client.delete("/api/sessions/s").await.status, 204);
    let left: Vec<_> = jobs(&queued.queue).await.into_iter().map(|at| at.run).collect();
    assert_eq!(left, [other["run"].as_str().expect("an id").into()]);
    assert_eq!(client.get(&path(&run)).await.status, 404);
}

#[tokio::test]
async fn a_fork_is_run_by_the_workers_like_every_other_run() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let _worker = queued.worker(vec![Turn::text("Paris."), call("c1", "A-1"), Turn::text("Refunded.")]);
    client.run(&json!({"input": "Where shall we go?", "session": "trip"})).await;
    let edit = json!({"step": 0, "into": "trip-2", "edit": {"text": "Refund it."}});
    let forked = client.post("/api/sessions/trip/fork", &edit).await;
    assert_eq!(forked.status, 202, "{}", forked.text);
    let forked = forked.json();
    let asked = client.rest(&forked).await;
    assert_eq!((&asked["session"], &asked["status"]), (&json!("trip-2"), &json!("waiting")), "{asked}");
    let answers = json!({"answers": [{"question": "c1/approval", "allow": true}]});
    let answered = client.post(&format!("{}/answers", path(&forked)), &answers).await;
    assert_eq!(answered.status, 202, "{}", answered.text);
    assert_eq!(client.rest(&forked).await["answer"], "Refunded.");
    let again = client.post("/api/sessions/trip/fork", &edit).await;
    assert_eq!(again.status, 400, "there is a session of this name: {}", again.text);
}

#[tokio::test]
async fn the_answer_of_a_run_is_told_though_a_later_one_has_begun() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let _worker = queued.worker(vec![Turn::text("Paris."), call("c1", "A-1")]);
    let first = client.run(&json!({"input": "Where shall we go?", "session": "trip"})).await;
    assert_eq!(first["answer"], "Paris.");
    let second = client.run(&json!({"input": "Refund it.", "session": "trip"})).await;
    assert_eq!((&second["status"], &second["answer"]), (&json!("waiting"), &Value::Null));
    assert_eq!(client.rest(&first).await["answer"], "Paris.");
}

#[tokio::test]
async fn a_fork_that_the_queue_does_not_take_leaves_no_session() {
    let limits = agent::store::QueueLimits::default().queued(1);
    let (queue, journal) = (Arc::new(MemoryQueue::with_limits(limits)), MemoryJournal::default());
    let agent = |turns: Vec<Turn>| Agent::builder("support", ScriptedModel::new(turns));
    let of_worker = agent(vec![Turn::text("Paris.")]).store(journal.clone()).build().expect("an agent");
    of_worker.start(agent::RunRequest::user("Where shall we go?").session("local/trip")).await.expect("it finishes");
    let front = Server::builder().agent(agent(Vec::new()).build().expect("an agent"));
    let serving = Serving::new(front.store(journal.clone()).queue(queue)).await;
    serving.client().start(&json!({"input": "Hi."})).await;
    let fork = json!({"step": 0, "into": "trip-2"});
    let refused = serving.client().post("/api/sessions/trip/fork", &fork).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(journal.sessions().await.expect("lists"), ["local/trip"]);
}

#[tokio::test]
async fn a_run_that_the_queue_does_not_take_leaves_no_session() {
    let receiver = Receiver::new(Vec::new()).await;
    let limits = agent::store::QueueLimits::default().queued(1);
    let (queue, journal) = (Arc::new(MemoryQueue::with_limits(limits)), MemoryJournal::default());
    let agent = Agent::builder("support", ScriptedModel::new([])).build().expect("an agent");
    let server = Server::builder().agent(agent).store(journal.clone()).queue(queue).webhooks(webhooks());
    let serving = Serving::new(server).await;
    let told = |session: &str| json!({"input": "Hi.", "session": session, "webhook": receiver.url});
    serving.client().start(&told("first")).await;
    let refused = serving.client().post("/api/agents/support/runs", &told("second")).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(journal.sessions().await.expect("lists"), ["local/first"]);
}

#[tokio::test]
async fn a_run_that_was_cancelled_before_it_began_is_cancelled_for_all_who_ask() {
    let mut receiver = Receiver::new(Vec::new()).await;
    let (queue, journal) = (Arc::new(MemoryQueue::default()), MemoryJournal::default());
    let agent = Agent::builder("support", ScriptedModel::new([])).build().expect("an agent");
    let serving = Serving::new(Server::builder().agent(agent).store(journal).queue(queue).webhooks(webhooks())).await;
    let client = serving.client();
    let run = client.start(&json!({"input": "Hi.", "webhook": receiver.url})).await;
    assert_eq!(client.post(&format!("{}/cancel", path(&run)), &json!({})).await.status, 202);
    assert_eq!(client.rest(&run).await["status"], "cancelled");
    let told = receiver.next().await.json();
    assert_eq!((&told["type"], &told["data"]["run"]), (&json!("run.cancelled"), &run["run"]));
}

#[tokio::test]
async fn a_run_that_was_paused_before_it_began_is_paused() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let run = client.start(&json!({"input": "Hi."})).await;
    assert_eq!(client.post(&format!("{}/pause", path(&run)), &json!({})).await.status, 202);
    assert_eq!(client.rest(&run).await["status"], "paused");
}

/// Queue that accepts the first job, and fails before it can acknowledge.
struct Interrupted(Arc<MemoryQueue>);

#[async_trait]
impl Dispatch for Interrupted {
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        match self.0.dispatch(job).await? {
            Dispatched::New => Err(Error::new(ErrorKind::Store, "the connection was lost")),
            known => Ok(known),
        }
    }

    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()> {
        self.0.answer(run, answers).await
    }

    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool> {
        self.0.signal(run, signal).await
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>> {
        self.0.standing(run).await
    }
}

#[tokio::test]
async fn a_program_is_told_of_a_run_that_was_handed_over_by_a_request_that_failed() {
    let (mut of_run, mut of_server) = (Receiver::new(Vec::new()).await, Receiver::new(Vec::new()).await);
    let (queue, journal) = (Arc::new(MemoryQueue::default()), MemoryJournal::default());
    let agent = Agent::builder("support", ScriptedModel::new([])).build().expect("an agent");
    let server = Server::builder().agent(agent).store(journal).webhooks(webhooks().url(&of_server.url));
    let serving = Serving::new(server.dispatch(Arc::new(Interrupted(queue.clone())))).await;
    let client = serving.client();
    let start = async || {
        let body = json!({"input": "Hi.", "webhook": of_run.url});
        let mut request = client.json(http::Method::POST, "/api/agents/support/runs", &body);
        request.headers_mut().insert("idempotency-key", "k".parse().expect("letters"));
        client.answer(request).await
    };
    assert_eq!(start().await.status, 503);
    let run = start().await;
    assert!(run.status < 300, "{}", run.text);
    give_up(&*queue, &queue.claim(&claim()).await.expect("works").expect("there is one")).await;
    for receiver in [&mut of_run, &mut of_server] {
        assert_eq!(receiver.next().await.json()["type"], "run.failed");
    }
}

fn claim() -> Claim {
    Claim::new("dies", ["support".into()], Duration::from_secs(600))
}

#[tokio::test]
async fn a_program_is_told_each_time_that_a_run_is_given_up_though_its_session_tells_nothing() {
    let mut receiver = Receiver::new(Vec::new()).await;
    let (queue, journal) = (Arc::new(MemoryQueue::default()), MemoryJournal::default());
    let serve = async || {
        let front = Agent::builder("support", ScriptedModel::new([])).build().expect("an agent");
        let server = Server::builder().agent(front).store(journal.clone()).queue(queue.clone());
        Serving::new(server.webhooks(webhooks())).await
    };
    let first = serve().await;
    first.client().start(&json!({"input": "Hi.", "webhook": receiver.url})).await;
    let claimed = dies_with_one(&*queue, &journal).await;
    give_up(&*queue, &claimed).await;
    let told = receiver.next().await;
    first.stopped().await;
    // This server has no active run: it searches the sessions once a minute.
    let second = serve().await;
    assert_eq!(second.client().get("/api/runs").await.status, 200);
    let mut ids = vec![told.header("webhook-id").to_owned()];
    for _ in 0..2 {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(61)).await;
        tokio::time::resume();
        assert!(queue.retry(&claimed.job.at).await.expect("works"));
        let again = queue.claim(&claim()).await.expect("works").expect("there is one");
        give_up(&*queue, &again).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(61)).await;
        tokio::time::resume();
        let told = receiver.next().await;
        assert_eq!(told.json()["type"], "run.failed");
        let id = told.header("webhook-id").to_owned();
        assert!(!ids.contains(&id), "it happened again");
        ids.push(id);
    }
}

#[tokio::test]
async fn what_workers_do_not_do_with_a_busy_session_is_refused_by_name() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    for busy in ["reject", "steer", "fork"] {
        let body = json!({"input": "Hi.", "session": "s", "when_busy": busy});
        let refused = client.post("/api/agents/support/runs", &body).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"), "{busy}: {}", refused.text);
        assert!(refused.text.contains("when_busy"), "{}", refused.text);
    }
    client.start(&json!({"input": "Hi.", "session": "s", "when_busy": "queue"})).await;
}

#[tokio::test]
async fn those_who_watch_a_run_below_one_that_was_given_up_are_told_that_it_rests() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    client.start(&json!({"input": "Hi.", "session": "s"})).await;
    let claimed = queued.queue.claim(&claim()).await.expect("works").expect("there is one");
    let helper = Agent::builder("helper", Gated::new([])).build().expect("an agent");
    let delegates = Turn::call("c1", "delegate", json!({"agent": "helper", "message": "Help."}));
    let agent = Agent::builder("support", ScriptedModel::new([delegates])).store(queued.journal.clone());
    let agent = agent.middleware(Delegation::new().to("helper", "Helps.", helper)).build().expect("an agent");
    let run = agent.start(claimed.job.request());
    let (mut events, (begun, begins)) = (run.handle().events(), oneshot::channel());
    let task = tokio::spawn(run);
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if event.ids.agent.as_ref() == "helper" && event.position.after == 0 {
                return drop(begun.send(event.ids.run_id.clone()));
            }
        }
    });
    let below = begins.await.expect("it begins");
    task.abort();
    drop(task.await);
    let watching = tokio::spawn({
        let (client, path) = (queued.serving.client(), format!("/api/runs/{below}/events?session=s"));
        async move { client.get(&path).await.status }
    });
    tokio::task::yield_now().await;
    give_up(&*queued.queue, &claimed).await;
    let ended = tokio::time::timeout(Duration::from_secs(20), watching).await.expect("it ends").expect("no panic");
    assert_eq!(ended, 200);
}

#[tokio::test]
async fn a_repeated_key_with_another_body_is_refused_while_the_run_waits_in_the_queue_and_afterwards() {
    let queued = Queued::new().await;
    let client = queued.serving.client();
    let start = async |input: &str| {
        let body = json!({"input": input, "session": "s"});
        let mut request = client.json(http::Method::POST, "/api/agents/support/runs", &body);
        request.headers_mut().insert("idempotency-key", "k".parse().expect("letters"));
        client.answer(request).await
    };
    let first = start("Hi.").await.json();
    let check = async || {
        assert_eq!(start("Another.").await.code(), "idempotency_mismatch");
        let again = start("Hi.").await;
        assert_eq!((again.status, &again.json()["run"]), (200, &first["run"]), "{}", again.text);
    };
    check().await;
    let _worker = queued.worker(vec![Turn::text("Hello.")]);
    assert_eq!(client.rest(&first).await["answer"], "Hello.");
    check().await;
}
