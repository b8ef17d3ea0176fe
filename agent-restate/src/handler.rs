//! Handler side of a run: owns Restate's journal, which is positional, and reads and writes it in
//! one order.

use std::{pin::Pin, sync::Arc, time::Duration};

use agent_core::journal::SessionInfo;
use agent_dispatch::{Job, RunAddress};

use restate_sdk::{
    context::{CallFuture, DurableFuture, RequestTarget, RunFuture, macro_support::SealedDurableFuture},
    endpoint::ContextInternal,
    errors::{HandlerError, TerminalError},
    serde::Json,
};
use serde_json::value::RawValue;

use crate::{
    Outcome,
    blobs::Blobs,
    callers::Callers,
    record::{Anchoring, Batch, Called, Noted, Record, Stored, raw},
    session::{self, Asked, Head, Open, TO_GO_ON},
    step_log::{StepLog, Taken, now},
    tell::{Tell, TellRun, key},
};

/// Pending command: an external event that has not occurred yet.
struct Pending<'a> {
    name: String,
    command: Command<'a, Given>,
    /// Called run whose end completes the command.
    callee: Option<Callee>,
}

/// Run of another session that this run called.
struct Callee {
    service: String,
    at: RunAddress,
    invocation: Option<String>,
}

type Command<'a, T> = Pin<Box<dyn DurableFuture<Output = Result<T, TerminalError>> + Send + 'a>>;

/// Result of a Restate command: JSON.
type Given = Box<RawValue>;

/// Reads the recorded batches of a run in their order and executes their commands.
///
/// The command at each position of the journal depends only on the batches, which a replay reads
/// back unchanged: every attempt therefore issues the same commands.
pub(crate) struct Handler<'a> {
    ctx: &'a ContextInternal,
    steps: &'a StepLog,
    blobs: &'a Blobs,
    head: Head,
    /// Sequence number of the newest entry from before the run.
    before: u64,
    open: Open,
    /// Check of the fingerprint with which the run began.
    fits: &'a (dyn Fn(&str) -> Result<(), HandlerError> + Sync),
    /// Runs that wait for this one.
    callers: &'a Callers,
    /// Pending commands in the order in which they were issued.
    pending: Vec<Pending<'a>>,
    /// Signal for the next message to the run.
    told: Command<'a, Json<Tell>>,
}

impl<'a> Handler<'a> {
    pub(crate) fn new(
        ctx: &'a ContextInternal,
        steps: &'a StepLog,
        blobs: &'a Blobs,
        head: Head,
        open: Open,
        fits: &'a (dyn Fn(&str) -> Result<(), HandlerError> + Sync),
        callers: &'a Callers,
    ) -> Self {
        let (before, pending, told) = (head.newest, Vec::new(), told(ctx));
        Self { ctx, steps, blobs, head, before, open, fits, callers, pending, told }
    }

    /// Processes batches until the run's outcome is recorded.
    pub(crate) async fn run(mut self) -> Result<Given, HandlerError> {
        loop {
            let (ctx, steps, blobs) = (self.ctx, self.steps, self.blobs);
            let taking = || async { Ok(Json(take(steps, blobs).await?)) };
            let Ok(Json(batch)) = ctx.run(taking).name("steps").await else {
                self.cancelled(); // the only error of a batch: its content is not lost
                continue;
            };
            if let Some(outcome) = self.read(batch).await? {
                session::set_open(self.ctx, None);
                return Ok(outcome);
            }
        }
    }

    fn cancelled(&self) {
        self.steps.put_back();
        self.steps.tell(|told| told.cancel = true);
    }

    /// Reads a batch and executes its records. Returns the run's outcome if the batch contains it.
    async fn read(&mut self, batch: Batch) -> Result<Option<Given>, HandlerError> {
        if let Some(mut noted) = batch.noted {
            if !self.steps.is_live() {
                let entries = session::entries_of(&noted.entries, self.blobs).await?;
                self.steps.know(&entries);
            }
            // A snapshot covers the entries before the run, and readers locate it by the entry
            // before it.
            noted.anchor = noted.anchor.filter(|_| self.head.newest == self.before);
            session::append(self.ctx, &mut self.head, noted);
        }
        self.steps.read(&batch.records);
        for record in &batch.records {
            match record {
                Record::Began { fingerprint } => (self.fits)(fingerprint)?,
                Record::Sleeps { name, until } => {
                    let time = Duration::from_millis(until.saturating_sub(now()));
                    let sleep = self.ctx.sleep(time).map_ok(|()| RawValue::NULL.to_owned());
                    self.waits_for(name, Box::pin(sleep), None);
                }
                Record::Asks { name, question, signal } => self.asks(name, question, signal),
                Record::Rests { name, .. } => self.asks(name, TO_GO_ON, name),
                Record::Calls { name, service, job } => self.calls(name, service.as_ref(), job).await,
                Record::GivesUp { name } => self.gives_up(name)?,
                Record::Due { name } => {
                    if let Some(at) = self.pending(name) {
                        self.comes_true(at).await;
                    }
                }
                Record::Ended { outcome } => return Ok(Some(outcome.clone())),
                Record::Kept { .. } => {}
            }
        }
        if batch.looks {
            self.look().await;
        }
        if batch.waits {
            self.wait().await;
        }
        Ok(None)
    }

    /// Waits for a signal that carries the answer to the question.
    fn asks(&mut self, name: &str, question: &str, signal: &str) {
        let answer = self.ctx.signal::<Json<Given>>(signal).map_ok(Json::into_inner);
        self.waits_for(name, Box::pin(answer), None);
        let asked = Asked { name: name.to_owned(), signal: signal.to_owned() };
        self.open.asked.insert(question.to_owned(), asked);
        session::set_open(self.ctx, Some(&self.open));
    }

    /// Starts a run of another session and waits for its end. Cancelling this run cancels the
    /// called one.
    async fn calls(&mut self, name: &str, service: Option<&Arc<str>>, job: &Job) {
        let service = service.map_or(self.ctx.service_name(), |service| service).to_owned();
        let target = RequestTarget::object(&service, &*job.at.session, "run");
        let request = self.ctx.request::<_, Json<Outcome>>(target, Json(job.clone())).idempotency_key(key(&job.at));
        let (header, above) = self.callers.header();
        let call = request.header(header, above).call();
        let invocation = call.invocation_handle().await.map(|handle| handle.invocation_id().to_owned());
        if invocation.is_err() {
            self.cancelled();
        }
        let callee = Callee { service, at: job.at.clone(), invocation: invocation.ok() };
        // The error belongs to the called run; cancellation of this run is checked first.
        let ended = call.map(|ended| {
            let called = match ended {
                Ok(Json(outcome)) => Called::Ended(outcome),
                Err(e) => Called::Failed(e.message().to_owned()),
            };
            Ok(raw(&called).unwrap_or_else(|_| RawValue::NULL.to_owned()))
        });
        self.waits_for(name, Box::pin(ended), Some(callee));
    }

    fn waits_for(&mut self, name: &str, command: Command<'a, Given>, callee: Option<Callee>) {
        self.pending.push(Pending { name: name.to_owned(), command, callee });
    }

    /// Returns the position of the pending command of this name.
    fn pending(&self, name: &str) -> Option<usize> {
        self.pending.iter().position(|pending| pending.name == name)
    }

    /// Abandons a pending command; a called run is cancelled.
    fn gives_up(&mut self, name: &str) -> Result<(), HandlerError> {
        let Some(at) = self.pending(name) else { return Ok(()) };
        let Pending { callee, .. } = self.pending.remove(at);
        self.is_not_asked(name);
        if let Some(Callee { service, at, invocation }) = callee {
            if let Some(invocation) = invocation {
                self.ctx.cancel_invocation(&invocation);
            }
            // A process that is executing the called run only notices the cancellation when it
            // polls.
            let tells = Json(TellRun { run: at.run, tell: Tell::Cancel });
            let target = RequestTarget::object(service, &*at.session, "tell");
            _ = self.ctx.request::<_, Json<bool>>(target, tells).send();
            self.steps.comes_true(name, Stored::Here(raw(&Called::GivenUp)?));
        }
        Ok(())
    }

    /// Withdraws the question of the pending command of this name.
    fn is_not_asked(&mut self, name: &str) {
        let before = self.open.asked.len();
        self.open.asked.retain(|_, asked| asked.name != name);
        if self.open.asked.len() < before {
            session::set_open(self.ctx, Some(&self.open));
        }
    }

    /// Waits for a pending command. Nothing else runs meanwhile: Restate suspends the invocation if
    /// the wait is long.
    async fn wait(&mut self) {
        let mut all: Vec<_> = self.pending.iter().map(|pending| pending.command.handle()).collect();
        all.push(self.told.handle());
        match self.ctx.select(all).await {
            Ok(at) if at < self.pending.len() => self.comes_true(at).await,
            Ok(_) => self.is_told().await,
            Err(_) => self.cancelled(),
        }
    }

    /// Consumes the signals that have arrived by now.
    async fn look(&mut self) {
        let end: Command<'a, ()> = Box::pin(self.ctx.sleep(Duration::ZERO));
        loop {
            match self.ctx.select(vec![self.told.handle(), end.handle()]).await {
                Ok(0) => self.is_told().await,
                Ok(_) => {
                    if end.await.is_err() {
                        self.cancelled();
                    }
                    break;
                }
                Err(_) => self.cancelled(),
            }
        }
        self.steps.has_looked();
    }

    async fn is_told(&mut self) {
        let tell = std::mem::replace(&mut self.told, told(self.ctx));
        match tell.await {
            Ok(Json(tell)) => self.steps.tell(|told| tell.add_to(told)),
            Err(_) => self.cancelled(),
        }
    }

    /// Awaits one pending command, which is about to complete.
    async fn comes_true(&mut self, at: usize) {
        let given = (&mut self.pending[at].command).await;
        let Pending { name, .. } = self.pending.remove(at); // already polled: it yields nothing more
        match given {
            Ok(given) => {
                self.is_not_asked(&name);
                self.steps.comes_true(&name, Stored::Here(given));
            }
            Err(_) => self.cancelled(),
        }
    }
}

/// Takes the executor's next batch and stores its entries. Not called when a recorded batch is
/// replayed.
async fn take(steps: &StepLog, blobs: &Blobs) -> Result<Batch, HandlerError> {
    let Taken { mut batch, noted } = steps.next().await;
    if !noted.is_empty() {
        let (count, anchor) = (noted.len() as u64, Anchoring::of(&noted));
        let mut info = SessionInfo::default();
        noted.iter().for_each(|entry| info.apply(entry));
        let entries = blobs.keep(raw(&noted)?).await?;
        batch.noted = Some(Noted { count, anchor, info, entries });
    }
    Ok(batch)
}

fn told(ctx: &ContextInternal) -> Command<'_, Json<Tell>> {
    Box::pin(ctx.signal("told"))
}
