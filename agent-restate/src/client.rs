//! Client for a Restate server: [`Restate`].

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use agent_core::{Answer, Error, ErrorKind, Result, WhenBusy, WhenWaiting, async_trait, journal::RunStatus};
use agent_dispatch::{Dispatch, Dispatched, Job, JobStatus, RunAddress, Signal};
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    DEFAULT_SERVICE, Outcome,
    http::{Address, answer, client, json as parsed, said},
    session::{Open, TO_GO_ON},
    tell::{AnswerRun, Tell, TellRun, key},
};

/// Client for a Restate server: dispatches runs ([`Dispatch`]), reads sessions
/// ([`RestateJournal`](crate::RestateJournal)) and registers endpoints
/// ([`register`](Self::register)). Cheap to clone.
///
/// ```no_run
/// use agent_core::RunRequest;
/// use agent_dispatch::{Dispatch, Job};
/// use agent_restate::Restate;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let restate = Restate::builder("http://127.0.0.1:8080").admin("http://127.0.0.1:9070").build()?;
/// restate.register("http://127.0.0.1:9080").await?;
/// let job = Job::new("support", &RunRequest::user("A-17 came broken.").session("garden").run_id("r1"))?;
/// let run = job.at.clone();
/// restate.dispatch(job).await?;
/// println!("{:?}", restate.outcome(&run).await?.answer);
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Restate(Arc<Inner>);

struct Inner {
    service: String,
    ingress: Address,
    admin: Option<Address>,
}

/// Builder of a [`Restate`] client.
#[must_use]
pub struct RestateBuilder {
    service: String,
    ingress: String,
    admin: Option<String>,
    token: Option<Arc<str>>,
}

impl Restate {
    /// Returns a builder for the server with this ingress URL.
    pub fn builder(ingress: impl Into<String>) -> RestateBuilder {
        RestateBuilder { service: DEFAULT_SERVICE.into(), ingress: ingress.into(), admin: None, token: None }
    }

    /// Creates a client for the server with this ingress URL, with the default service and no admin
    /// address.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the URL is invalid.
    pub fn new(ingress: impl Into<String>) -> Result<Self> {
        Self::builder(ingress).build()
    }

    /// Registers an endpoint with the server, under a URL that the server can reach. New runs go to
    /// this endpoint from now on; runs that began at another endpoint stay there until they end.
    ///
    /// Registering a known URL again makes the server repeat the discovery: after an update of the
    /// program behind the URL, the server has the new program's handlers and options. Runs that
    /// began there resume there, with the new program; a run whose agent changed waits until the
    /// old program is back.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if there is no admin address or the server rejects the endpoint;
    /// [`ErrorKind::Store`] if the server or the endpoint cannot be reached.
    pub async fn register(&self, endpoint: &str) -> Result<()> {
        let request = self.admin()?.request(Method::POST, &["deployments"]);
        answer(request.json(&json!({"uri": endpoint, "force": true}))).await.map(drop)
    }

    /// Waits for the end of a run, without a timeout.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the run is unknown or its outcome is no longer retained;
    /// [`ErrorKind::Store`] if the server cannot be reached or does not know the service, because
    /// no endpoint is registered or the server has just started.
    pub async fn outcome(&self, run: &RunAddress) -> Result<Outcome> {
        parsed(&answer(self.invocation(run, "attach")).await?)
    }

    /// Returns the current state of a run's result without waiting.
    async fn output(&self, run: &RunAddress) -> Result<Output> {
        let said = said(self.invocation(run, "output")).await?;
        match said.status.as_u16() {
            _ if said.status.is_success() => Ok(Output::Ended(parsed(&said)?)),
            // The invocation itself failed: it was killed, or no endpoint knew its agent.
            _ if said.is_of_invocation() => Ok(Output::Failed(said.refusal().message().to_owned())),
            _ if said.is_unknown_invocation() => Ok(Output::Unknown),
            470 => Ok(Output::Open),
            // The state of the run is unknown: the server is starting, or a proxy rejected the
            // request.
            _ => Err(said.refusal()),
        }
    }

    /// Builds a request about a run's invocation.
    fn invocation(&self, run: &RunAddress, what: &str) -> RequestBuilder {
        let path = ["restate", "invocation", &self.0.service, &run.session, "run", &key(run), what];
        self.0.ingress.request(Method::GET, &path)
    }

    /// Calls a handler of a session.
    pub(crate) async fn call<T: serde::de::DeserializeOwned>(
        &self,
        session: &str,
        handler: &str,
        input: &impl serde::Serialize,
    ) -> Result<T> {
        self.call_of(&self.0.service, session, handler, input).await
    }

    /// Calls a handler of a virtual object of the given service.
    pub(crate) async fn call_of<T: serde::de::DeserializeOwned>(
        &self,
        service: &str,
        key: &str,
        handler: &str,
        input: &impl serde::Serialize,
    ) -> Result<T> {
        self.0.ingress.call(&[service, key, handler], input).await
    }

    /// Returns the name of the service.
    pub(crate) fn service(&self) -> &str {
        &self.0.service
    }

    /// Queries the server's introspection tables.
    pub(crate) async fn query(&self, sql: &str) -> Result<Vec<Value>> {
        #[derive(Deserialize)]
        struct Rows {
            rows: Vec<Value>,
        }
        let request = self.admin()?.request(Method::POST, &["query"]).header("accept", "application/json");
        let Rows { rows } = parsed(&answer(request.json(&json!({"query": sql}))).await?)?;
        Ok(rows)
    }

    fn admin(&self) -> Result<&Address> {
        self.0.admin.as_ref().ok_or_else(|| Error::config("Restate's admin address is required: set it with admin(..)"))
    }

    /// Cancels a run that has not begun. Returns `false` if no such invocation exists.
    async fn cancel_queued(&self, run: &RunAddress) -> Result<bool> {
        let [service, session, key] = [self.service(), &run.session, &key(run)].map(|text| text.replace('\'', "''"));
        let sql = format!(
            "SELECT id FROM sys_invocation WHERE target_service_name = '{service}' AND target_service_key = '{session}' \
             AND idempotency_key = '{key}' AND status <> 'completed'"
        );
        let rows = self.query(&sql).await?;
        for id in rows.iter().filter_map(|row| row["id"].as_str()) {
            answer(self.admin()?.request(Method::PATCH, &["invocations", id, "cancel"])).await?;
        }
        Ok(!rows.is_empty())
    }
}

/// Rejects a job whose options Restate would ignore.
fn takes(job: &Job) -> Result<()> {
    if job.priority != 0 {
        return Err(Error::config("Restate runs a session's jobs in order of arrival: remove the priority"));
    }
    match job.when_busy {
        Some(WhenBusy::Reject | WhenBusy::Steer | WhenBusy::Fork) => Err(Error::config(
            "on Restate a run waits until its session is free: remove when_busy, or steer the active run",
        )),
        _ => Ok(()),
    }
}

/// State of a run's result on the server.
enum Output {
    Unknown,
    Open,
    Ended(Outcome),
    Failed(String),
}

impl Restate {
    /// Returns the questions and state of the run while it is the session's active run.
    async fn open(&self, run: &RunAddress) -> Result<Option<Open>> {
        let open: Option<Open> = self.call(&run.session, "open", &()).await?;
        Ok(open.filter(|open| open.run == run.run))
    }

    /// Cancels the suspended run of the session, so that the run `by`, which is queued behind it,
    /// can begin.
    async fn supersede(&self, by: &RunAddress) -> Result<()> {
        let open: Option<Open> = self.call(&by.session, "open", &()).await?;
        if let Some(open) = open.filter(|open| !open.asked.is_empty() && open.run != by.run) {
            let _: bool = self.call(&by.session, "tell", &TellRun { run: open.run, tell: Tell::Cancel }).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Dispatch for Restate {
    /// Sends the job. If the job supersedes a run that waits for answers, that run is cancelled.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a priority, and for a job that must not wait for its session:
    /// Restate supports neither.
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        #[derive(Deserialize)]
        struct Sent {
            status: String,
        }
        takes(&job)?;
        let path = [self.service(), &job.at.session, "run", "send"];
        let mut request = self.0.ingress.request(Method::POST, &path).header("idempotency-key", key(&job.at));
        if let Some(at) = job.not_before {
            request = request.query(&[("delay", format!("{}ms", at.saturating_sub(crate::step_log::now())))]);
        }
        if let Some(trace) = &job.traceparent {
            request = request.header("traceparent", &**trace);
        }
        let Sent { status } = parsed(&answer(request.json(&job)).await?)?;
        let is_new = status != "PreviouslyAccepted";
        // An earlier sender may have died before this point: repeat the cancellation until the run
        // has begun.
        if job.when_waiting == Some(WhenWaiting::Supersede)
            && (is_new || matches!(self.output(&job.at).await?, Output::Open))
        {
            self.supersede(&job.at).await?;
        }
        Ok(if is_new { Dispatched::New } else { Dispatched::Known })
    }

    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()> {
        let mut asked: Vec<_> = answers.keys().cloned().collect();
        if asked.is_empty() {
            asked.push(TO_GO_ON.to_owned());
        }
        self.call::<()>(&run.session, "answer", &AnswerRun { run: run.run.clone(), answers }).await?;
        // The answers are durable. Wait briefly until the run has received them and no longer
        // counts as suspended; after a rejected answer the run asks again.
        let taken = async {
            while self.open(run).await?.is_some_and(|open| asked.iter().any(|id| open.asked.contains_key(id))) {
                sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        timeout(Duration::from_secs(1), taken).await.unwrap_or(Ok(()))
    }

    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool> {
        let tell = match signal {
            Signal::Cancel => Tell::Cancel,
            Signal::Pause => Tell::Pause,
            Signal::Steer(message) => Tell::Steer(message),
            _ => return Err(Error::config("unsupported signal")),
        };
        let cancels = tell == Tell::Cancel;
        if self.call(&run.session, "tell", &TellRun { run: run.run.clone(), tell }).await? {
            return Ok(true);
        }
        match (self.output(run).await?, cancels) {
            (Output::Open, true) => self.cancel_queued(run).await,
            (Output::Open, false) => {
                let message = "the run has not begun: put the text into its first message";
                Err(Error::new(ErrorKind::Stale, message))
            }
            _ => Ok(false),
        }
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>> {
        Ok(match self.output(run).await? {
            Output::Unknown => None,
            Output::Ended(Outcome { status: RunStatus::Failed, error, .. }) => {
                Some(JobStatus::Dead { error: error.unwrap_or_default() })
            }
            Output::Failed(error) => Some(JobStatus::Dead { error }),
            Output::Ended(_) => Some(JobStatus::Done),
            Output::Open => Some(match self.open(run).await? {
                None => JobStatus::Queued,
                Some(open) if open.asked.is_empty() => JobStatus::Running { worker: open.invocation },
                Some(_) => JobStatus::AtRest,
            }),
        })
    }
}

impl RestateBuilder {
    /// Sets the URL of the server's admin interface, which [`register`](Restate::register), the
    /// list of sessions and the cancellation of queued runs need. Default: none.
    pub fn admin(mut self, url: impl Into<String>) -> Self {
        self.admin = Some(url.into());
        self
    }

    /// Sets the name of the service, which must match the endpoint's. Default: `Sessions`.
    pub fn service(mut self, name: impl Into<String>) -> Self {
        self.service = name.into();
        self
    }

    /// Sets the bearer token that is sent with every call. Default: none.
    pub fn token(mut self, token: impl Into<Arc<str>>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Builds the client. Does not connect yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if an address is not a valid URL.
    pub fn build(self) -> Result<Restate> {
        let client = client()?;
        let ingress = Address::new(&client, &self.ingress, self.token.clone())?;
        let admin = self.admin.map(|url| Address::new(&client, &url, self.token)).transpose()?;
        Ok(Restate(Arc::new(Inner { service: self.service, ingress, admin })))
    }
}

impl fmt::Debug for Restate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restate").field("service", &self.0.service).finish_non_exhaustive()
    }
}

impl fmt::Debug for RestateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestateBuilder").field("service", &self.service).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use agent_core::RunRequest;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn what_restate_would_pass_over_is_refused_before_it_is_asked() {
        let restate = Restate::builder("http://127.0.0.1:1").build().expect("a URL");
        let job = |request: RunRequest| Job::new("a", &request).expect("is data");
        let hello = || RunRequest::user("hello");
        let busy = [WhenBusy::Reject, WhenBusy::Steer, WhenBusy::Fork].map(|busy| job(hello().when_busy(busy)));
        for job in busy.into_iter().chain([job(hello()).priority(1)]) {
            let error = restate.dispatch(job).await.expect_err("is refused");
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        }
        let error = restate.dispatch(job(hello().when_busy(WhenBusy::queue()))).await.expect_err("nobody is there");
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
    }

    /// Returns the status of a run for a server response with this HTTP status, error source and
    /// body.
    async fn stands(status: u16, source: Option<&str>, body: &str) -> Result<Option<JobStatus>> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has ports");
        let restate = Restate::new(format!("http://{}", listener.local_addr().expect("is bound"))).expect("a URL");
        let source = source.map(|source| format!("x-restate-error-source: {source}\r\n")).unwrap_or_default();
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status} so\r\n{source}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
        let serves = async {
            let (mut stream, _) = listener.accept().await.expect("is called");
            let mut asked = [0; 1024];
            assert!(stream.read(&mut asked).await.expect("is asked") > 0);
            stream.write_all(answer.as_bytes()).await.expect("answers");
        };
        let run = RunAddress::new("a", "s", "r");
        tokio::join!(restate.standing(&run), serves).0
    }

    #[tokio::test]
    async fn what_is_before_a_run_or_begins_anew_tells_nothing_of_the_run() {
        let unknown = r#"{"code":404,"message":"service 'Sessions' not found, make sure to register the service before calling it."}"#;
        let error = stands(404, Some("ingress"), unknown).await.expect_err("nobody knows");
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        assert!(error.message().contains("register") && error.message().contains("just begun"), "{error}");
        assert_eq!(stands(404, None, unknown).await.expect_err("nobody knows").kind(), ErrorKind::Store);
        for status in [401, 403, 404, 408, 429, 500, 502, 503, 504] {
            stands(status, None, "<html>a proxy</html>").await.expect_err("nobody knows");
            let of_ingress = stands(status, Some("ingress"), r#"{"message":"not now"}"#).await;
            let is_unknown = status == 404 && matches!(of_ingress, Ok(None));
            assert!(is_unknown || of_ingress.is_err(), "{status}: {of_ingress:?}");
        }
    }

    #[tokio::test]
    async fn a_run_that_failed_is_told_from_one_that_nobody_knows() {
        for source in [Some("ingress"), None] {
            let known = stands(404, source, r#"{"code":404,"message":"invocation not found"}"#).await;
            assert_eq!(known.expect("is known"), None);
        }
        for (status, source) in
            [(404, Some("invocation")), (500, Some("invocation")), (503, Some("invocation")), (500, None)]
        {
            let stands = stands(status, source, r#"{"message":"killed"}"#).await.expect("is known");
            assert!(matches!(&stands, Some(JobStatus::Dead { error }) if error.contains("killed")), "{stands:?}");
        }
    }
}
