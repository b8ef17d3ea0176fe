//! The conformance suite finds violations.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use agent_core::{
    Flow, Middleware, ModelNext, ModelRequest, ModelResponse, Result, RunCx, ToolOutput, ToolRequest, async_trait,
};
use agent_exec::testing::Conformance;
use tokio::sync::Semaphore;

/// Returns the claim that the middleware violates.
async fn broken<M: Middleware + fmt::Debug>(make: impl Fn() -> M + Send + Sync + 'static) -> String {
    Conformance::new(make).observe(|m| format!("{m:?}")).check().await.expect_err("it is broken").claim
}

/// Counts calls over all runs, and sends the count to the model.
#[derive(Debug, Default)]
struct Counts(AtomicUsize);

#[async_trait]
impl Middleware for Counts {
    async fn before_tool(&self, _: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        req.args = Arc::new(serde_json::json!({"x": n / 3}));
        Ok(Flow::Continue)
    }
}

#[tokio::test(start_paused = true)]
async fn state_that_runs_share_is_found() {
    assert_eq!(broken(Counts::default).await, "a second run sees nothing of the first");
}

/// Retains the contexts of runs.
#[derive(Default)]
struct Keeps(Mutex<Vec<RunCx>>);

impl fmt::Debug for Keeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keeps")
    }
}

#[async_trait]
impl Middleware for Keeps {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        self.0.lock().expect("free").push(cx.clone());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_holds_on_to_runs_is_found() {
    assert_eq!(broken(Keeps::default).await, "it does not hold on to runs that are over");
}

/// Retains a list of runs.
#[derive(Debug, Default)]
struct Lists(Mutex<Vec<String>>);

#[async_trait]
impl Middleware for Lists {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        self.0.lock().expect("free").push(cx.ids().run_id.to_string());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_runs_that_are_over_is_found() {
    assert_eq!(broken(Lists::default).await, "nothing is kept of a run that is over");
}

/// Behaves differently in a resumed run.
#[derive(Debug)]
struct Forgets;

#[async_trait]
impl Middleware for Forgets {
    async fn after_tool(&self, _: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        if req.resumed {
            *out = ToolOutput::text("resumed");
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_changes_what_a_resumed_run_comes_to_is_found() {
    assert_eq!(broken(|| Forgets).await, "a run that waited for an answer ends as one that knew it");
}

/// Changes the answer only if it is streamed.
#[derive(Debug)]
struct StreamOnly;

#[async_trait]
impl Middleware for StreamOnly {
    async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        let streams = req.stream;
        let mut res = next.run(req).await?;
        if streams && res.message.text() == "It is 42." {
            res.message = "It is 43.".into();
        }
        Ok(res)
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_treats_streams_otherwise_is_found() {
    assert_eq!(broken(|| StreamOnly).await, "what is streamed and what is said at once come to the same");
}

/// Lets one call through at a time, and none after one was cut off.
#[derive(Debug)]
struct Stuck(Semaphore);

#[async_trait]
impl Middleware for Stuck {
    async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        self.0.acquire().await.expect("open").forget();
        let answer = next.run(req).await;
        self.0.add_permits(1);
        answer
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stuck_after_a_call_was_cut_off_is_found() {
    let claim = broken(|| Stuck(Semaphore::new(1))).await;
    assert!(claim.starts_with("a run goes as ever when another was dropped at await"), "{claim}");
}

#[tokio::test(start_paused = true)]
async fn one_that_changes_something_is_not_transparent() {
    let tags = || Tags;
    Conformance::new(tags).check().await.expect("it may change outputs");
    let violation = Conformance::new(tags).transparent().check().await.expect_err("it changes outputs");
    assert_eq!(violation.claim, "model and tools see the same as without it");
}

/// Adds a word to outputs.
#[derive(Debug)]
struct Tags;

#[async_trait]
impl Middleware for Tags {
    async fn after_tool(&self, _: &RunCx, _: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        out.content_mut().push("tagged".into());
        Ok(())
    }
}

/// Keeps a count over all runs, on purpose, and a secret. It is not `Debug`.
struct Quota {
    used: AtomicUsize,
    _secret: String,
}

#[async_trait]
impl Middleware for Quota {
    async fn before_agent(&self, _: &RunCx) -> Result<()> {
        self.used.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn one_may_keep_values_over_runs_and_needs_no_debug() {
    let quota = || Quota { used: AtomicUsize::new(0), _secret: "s3cret".into() };
    Conformance::new(quota).transparent().check().await.expect("conforms");
    let observed = Conformance::new(quota).observe(|quota| quota.used.load(Ordering::SeqCst));
    let violation = observed.check().await.expect_err("what is observed must not change");
    assert_eq!(violation.claim, "nothing is kept of a run that is over");
    assert!(!violation.to_string().contains("s3cret"), "{violation}");
}
