//! The handler's side of a run: it owns Restate's journal, which is positional, and reads and writes it in one order.

use std::{pin::Pin, sync::Arc, time::Duration};

use agent_core::{
    dispatch::{Job, RunAddress},
    journal::SessionInfo,
};

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

/// A wish that did not come true yet.
struct Pending<'a> {
    name: String,
    command: Command<'a, Given>,
    /// The run whose end it is.
    callee: Option<Callee>,
}

/// A run of another session.
struct Callee {
    service: String,
    at: RunAddress,
    invocation: Option<String>,
}

type Command<'a, T> = Pin<Box<dyn DurableFuture<Output = Result<T, TerminalError>> + Send + 'a>>;

/// What a command of Restate gives: JSON.
type Given = Box<RawValue>;

/// What awaits what Restate keeps of a run, in the order in which it was kept, and does what belongs to it.
///
/// Which command stands at which place of the journal depends on the batches alone, which are read back the same: whoever drives
/// the run again makes the same commands.
pub(crate) struct Handler<'a> {
    ctx: &'a ContextInternal,
    steps: &'a StepLog,
    blobs: &'a Blobs,
    head: Head,
    /// The number of the newest entry from before the run.
    before: u64,
    open: Open,
    /// What a begun run must have been begun with.
    fits: &'a (dyn Fn(&str) -> Result<(), HandlerError> + Sync),
    /// The runs above this one.
    callers: &'a Callers,
    /// In the order in which they were made.
    pending: Vec<Pending<'a>>,
    /// The next thing that somebody tells the run.
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

    /// Goes on until the run's end is kept.
    pub(crate) async fn run(mut self) -> Result<Given, HandlerError> {
        loop {
            let (ctx, steps, blobs) = (self.ctx, self.steps, self.blobs);
            let taking = || async { Ok(Json(take(steps, blobs).await?)) };
            let Ok(Json(batch)) = ctx.run(taking).name("steps").await else {
                self.cancelled(); // the only error of a batch: what was in it is not lost
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

    /// Reads a batch, and does what it says; the run's end if that is in it.
    async fn read(&mut self, batch: Batch) -> Result<Option<Given>, HandlerError> {
        if let Some(mut noted) = batch.noted {
            if !self.steps.is_live() {
                let entries = session::entries_of(&noted.entries, self.blobs).await?;
                self.steps.know(&entries);
            }
            // It tells of what is before the run, and is found by the entry before it.
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

    /// The run waits for a signal, which is the answer to the question.
    fn asks(&mut self, name: &str, question: &str, signal: &str) {
        let answer = self.ctx.signal::<Json<Given>>(signal).map_ok(Json::into_inner);
        self.waits_for(name, Box::pin(answer), None);
        let asked = Asked { name: name.to_owned(), signal: signal.to_owned() };
        self.open.asked.insert(question.to_owned(), asked);
        session::set_open(self.ctx, Some(&self.open));
    }

    /// The run waits for the end of a run of another session, which is cancelled with it.
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
        // An error is the called run's own: who waits for this looks first whether this run was cancelled.
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

    /// The place of the wish of this name.
    fn pending(&self, name: &str) -> Option<usize> {
        self.pending.iter().position(|pending| pending.name == name)
    }

    /// Nobody waits for this any more.
    fn gives_up(&mut self, name: &str) -> Result<(), HandlerError> {
        let Some(at) = self.pending(name) else { return Ok(()) };
        let Pending { callee, .. } = self.pending.remove(at);
        self.is_not_asked(name);
        if let Some(Callee { service, at, invocation }) = callee {
            if let Some(invocation) = invocation {
                self.ctx.cancel_invocation(&invocation);
            }
            // A process that is busy with the run hears of it when it looks.
            let tells = Json(TellRun { run: at.run, tell: Tell::Cancel });
            let target = RequestTarget::object(service, &*at.session, "tell");
            _ = self.ctx.request::<_, Json<bool>>(target, tells).send();
            self.steps.comes_true(name, Stored::Here(raw(&Called::GivenUp)?));
        }
        Ok(())
    }

    /// Nobody is asked any more for what waits under this name.
    fn is_not_asked(&mut self, name: &str) {
        let before = self.open.asked.len();
        self.open.asked.retain(|_, asked| asked.name != name);
        if self.open.asked.len() < before {
            session::set_open(self.ctx, Some(&self.open));
        }
    }

    /// Waits for a wish to come true. Nothing runs meanwhile: Restate takes the run out of this process if it takes long.
    async fn wait(&mut self) {
        let mut all: Vec<_> = self.pending.iter().map(|pending| pending.command.handle()).collect();
        all.push(self.told.handle());
        match self.ctx.select(all).await {
            Ok(at) if at < self.pending.len() => self.comes_true(at).await,
            Ok(_) => self.is_told().await,
            Err(_) => self.cancelled(),
        }
    }

    /// Takes what somebody told the run by now.
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

    /// Waits for one wish, which is about to come true.
    async fn comes_true(&mut self, at: usize) {
        let given = (&mut self.pending[at].command).await;
        let Pending { name, .. } = self.pending.remove(at); // it was polled, and gives nothing more
        match given {
            Ok(given) => {
                self.is_not_asked(&name);
                self.steps.comes_true(&name, Stored::Here(given));
            }
            Err(_) => self.cancelled(),
        }
    }
}

/// What the executor has for the journal. This is not called for a place where a batch is kept.
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
