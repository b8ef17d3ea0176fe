//! Restate, as seen from outside: [`Restate`].

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use agent_core::{
    Answer, Error, ErrorKind, Result, WhenBusy, WhenWaiting, async_trait,
    dispatch::{Dispatch, Dispatched, Job, RunAddress, Signal, Standing},
    journal::RunStatus,
};
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

/// A Restate server with agents: takes runs over ([`Dispatch`]), has their sessions read
/// ([`RestateJournal`](crate::RestateJournal)), and learns of endpoints ([`register`](Self::register)). Cheap to clone.
///
/// ```no_run
/// use agent_core::{RunRequest, dispatch::{Dispatch, Job}};
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

/// Makes a [`Restate`].
#[must_use]
pub struct RestateBuilder {
    service: String,
    ingress: String,
    admin: Option<String>,
    token: Option<Arc<str>>,
}

impl Restate {
    /// A builder for the server whose ingress is at this URL.
    pub fn builder(ingress: impl Into<String>) -> RestateBuilder {
        RestateBuilder { service: DEFAULT_SERVICE.into(), ingress: ingress.into(), admin: None, token: None }
    }

    /// The server whose ingress is at this URL, with the default service and no admin address.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if that is no URL.
    pub fn new(ingress: impl Into<String>) -> Result<Self> {
        Self::builder(ingress).build()
    }

    /// Tells the server of an endpoint that serves agents, at a URL that the server reaches. New runs go there from now on; runs
    /// that began at another one are driven there to their end.
    ///
    /// A URL that the server knows is asked again what it serves: after an update of the program in its place the server has the handlers and the options of
    /// the new one. Runs that began there go on there, with the new program; one whose agent changed waits until the old one is back.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if there is no admin address, or the endpoint is not as it should be; [`ErrorKind::Store`] if the
    /// server or the endpoint cannot be reached.
    pub async fn register(&self, endpoint: &str) -> Result<()> {
        let request = self.admin()?.request(Method::POST, &["deployments"]);
        answer(request.json(&json!({"uri": endpoint, "force": true}))).await.map(drop)
    }

    /// Waits for the end of a run, however long it takes.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a run that is not known, or whose end is not kept any more; [`ErrorKind::Store`] if the server
    /// cannot be reached, or does not know the service: nobody registered it, or the server has just begun.
    pub async fn outcome(&self, run: &RunAddress) -> Result<Outcome> {
        parsed(&answer(self.invocation(run, "attach")).await?)
    }

    /// The end of a run; none if it is under way or queued.
    async fn output(&self, run: &RunAddress) -> Result<Output> {
        let said = said(self.invocation(run, "output")).await?;
        match said.status.as_u16() {
            _ if said.status.is_success() => Ok(Output::Ended(parsed(&said)?)),
            // The invocation itself failed: it was killed, or nobody knew its agent.
            _ if said.is_of_invocation() => Ok(Output::Failed(said.refusal().message().to_owned())),
            _ if said.is_unknown_invocation() => Ok(Output::Unknown),
            470 => Ok(Output::Open),
            // Nobody knows what became of the run: the server begins, or somebody before it refuses.
            _ => Err(said.refusal()),
        }
    }

    /// Asks for what became of a run.
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

    /// Calls a handler of an object of this service.
    pub(crate) async fn call_of<T: serde::de::DeserializeOwned>(
        &self,
        service: &str,
        key: &str,
        handler: &str,
        input: &impl serde::Serialize,
    ) -> Result<T> {
        self.0.ingress.call(&[service, key, handler], input).await
    }

    /// The name of the service.
    pub(crate) fn service(&self) -> &str {
        &self.0.service
    }

    /// Rows of a query of the server's own tables.
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
        self.0.admin.as_ref().ok_or_else(|| Error::config("this needs Restate's admin address: give it with admin(..)"))
    }

    /// Cancels a run that has not begun.
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

/// Refuses what Restate would pass over.
fn takes(job: &Job) -> Result<()> {
    if job.priority != 0 {
        return Err(Error::config(
            "Restate takes runs in the order in which they came: send this one without a priority",
        ));
    }
    match job.when_busy {
        Some(WhenBusy::Reject | WhenBusy::Steer | WhenBusy::Fork) => Err(Error::config(
            "over Restate a run waits for the one that its session is busy with: send it without when_busy, or steer that one",
        )),
        _ => Ok(()),
    }
}

/// What the server has of a run's end.
enum Output {
    Unknown,
    Open,
    Ended(Outcome),
    Failed(String),
}

impl Restate {
    /// What the run waits for, while it is under way.
    async fn open(&self, run: &RunAddress) -> Result<Option<Open>> {
        let open: Option<Open> = self.call(&run.session, "open", &()).await?;
        Ok(open.filter(|open| open.run == run.run))
    }

    /// Cancels the run that the session waits with, so that this one, which was sent after it, has its turn.
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
    /// Sends it. If it is to supersede a run that waits for answers, that run is cancelled.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a priority, and for a job that is not to wait for its session: Restate has neither.
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
        // Whoever sent it before may have died then: it supersedes until it has had its turn.
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
        // They are durable. The run has them in a moment, and is no more called one that waits; of some that do not fit it asks again.
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
            _ => return Err(Error::config("this release does not know that signal")),
        };
        let cancels = tell == Tell::Cancel;
        if self.call(&run.session, "tell", &TellRun { run: run.run.clone(), tell }).await? {
            return Ok(true);
        }
        match (self.output(run).await?, cancels) {
            (Output::Open, true) => self.cancel_queued(run).await,
            (Output::Open, false) => {
                let message = "the run has not begun: it is told by the message that it begins with";
                Err(Error::new(ErrorKind::Stale, message))
            }
            _ => Ok(false),
        }
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<Standing>> {
        Ok(match self.output(run).await? {
            Output::Unknown => None,
            Output::Ended(Outcome { status: RunStatus::Failed, error, .. }) => {
                Some(Standing::Dead { error: error.unwrap_or_default() })
            }
            Output::Failed(error) => Some(Standing::Dead { error }),
            Output::Ended(_) => Some(Standing::Done),
            Output::Open => Some(match self.open(run).await? {
                None => Standing::Queued,
                Some(open) if open.asked.is_empty() => Standing::Running { worker: open.invocation },
                Some(_) => Standing::AtRest,
            }),
        })
    }
}

impl RestateBuilder {
    /// The URL of the server's admin interface, for [`register`](Restate::register), the list of all sessions, and to cancel runs
    /// that are queued. Default: none.
    pub fn admin(mut self, url: impl Into<String>) -> Self {
        self.admin = Some(url.into());
        self
    }

    /// The name of the service, as its endpoint has it. Default: `Sessions`.
    pub fn service(mut self, name: impl Into<String>) -> Self {
        self.service = name.into();
        self
    }

    /// What is sent as a bearer token with every call. Default: nothing.
    pub fn token(mut self, token: impl Into<Arc<str>>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The server. It is not called yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if an address is no URL.
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

    /// How a run stands if whoever is asked for it answers with this status, source of the error, and body.
    async fn stands(status: u16, source: Option<&str>, body: &str) -> Result<Option<Standing>> {
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
            assert!(matches!(&stands, Some(Standing::Dead { error }) if error.contains("killed")), "{stands:?}");
        }
    }
}
