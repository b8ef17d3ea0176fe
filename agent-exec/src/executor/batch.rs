//! The tool calls of one message: prepared, run in waves, and answered in call order.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Result, ToolBatch, ToolOptions, ToolOutput, ToolRequest,
    engine::Hook,
    run::checkpoint::{CallState, PendingCall, PendingTurn, Phase},
    tool::BatchCall,
};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::{
    Active, Deadline, ToolEntry,
    background::{beside_others, unless_refused},
    call::{self, CallEnd},
    guard::guarded,
    schedule::{Access, waves},
    table::{self, given},
};
use crate::engine::Opened;

/// Outcome of a batch.
pub(super) enum BatchEnd {
    Answered,
    Suspended,
    Paused,
    Cancelled,
}

/// A call that is about to run.
struct ScheduledCall {
    /// Index of the call in the message.
    index: usize,
    entry: Arc<ToolEntry>,
    request: ToolRequest,
}

/// Outcome of the calls so far, except for the completed ones.
#[derive(Default)]
struct BatchOutcome {
    suspended: bool,
    cancelled: bool,
    failed: Option<Error>,
}

impl Active<'_> {
    /// Runs the calls that are not yet answered. Every answered call is recorded in the log, even
    /// if the batch fails.
    pub(super) async fn run_batch(&mut self, turn: &PendingTurn) -> Result<BatchEnd> {
        if turn.open_calls().next().is_none() {
            return Ok(BatchEnd::Answered);
        }
        self.batches += 1;
        let cx = self.cx().clone();
        let mut batch = ToolBatch::new(self.requests(turn));
        let hooks = async {
            for (i, m) in self.list.iter().enumerate() {
                let at = cx.engine().in_hook(Hook::BeforeTools, i);
                cx.engine().run_hook(&**m, m.before_tools(&at, &mut batch)).await?;
            }
            Ok(())
        };
        guarded(&cx, "before_tools", hooks).await?;
        let mut outcome = BatchOutcome::default();
        let scheduled = self.plan(turn, batch, &mut outcome);
        if scheduled.len() < 2 {
            self.run_wave(turn, scheduled, &mut outcome).await?;
            return self.end_of(outcome);
        }
        let order = waves(&scheduled.iter().map(access).collect::<Vec<_>>());
        let mut scheduled: Vec<_> = scheduled.into_iter().map(Some).collect();
        for wave in order {
            let calls = wave.into_iter().filter_map(|i| scheduled[i].take()).collect();
            self.run_wave(turn, calls, &mut outcome).await?;
            if outcome.suspended || outcome.cancelled || outcome.failed.is_some() {
                break;
            }
        }
        self.end_of(outcome)
    }

    /// Returns the requests of the calls that are not yet answered.
    fn requests(&self, turn: &PendingTurn) -> impl Iterator<Item = ToolRequest> {
        let calls = turn.message.calls().zip(&turn.calls);
        let open = calls.filter(|(_, pending)| !matches!(pending.state, CallState::Done(_)));
        open.map(|(call, _)| {
            let entry = self.table.get(&call.name);
            let args = table::parse(entry, &call.arguments).value;
            let mut request = ToolRequest::new(self.cx().clone(), call.clone(), args);
            request.batch = self.batches;
            request.offered = self.table.specs().clone();
            request.resumed = self.resumed;
            if let Some(entry) = entry {
                request.tool = Some(entry.spec.clone());
                (request.effect, request.hints) = (entry.options.effect, entry.options.hints);
                request.delegates = entry.options.delegates;
            }
            request
        })
    }

    /// Answers the calls that need no tool, and returns the calls to run, in the order that the
    /// hooks left.
    fn plan(&self, turn: &PendingTurn, batch: ToolBatch, outcome: &mut BatchOutcome) -> Vec<ScheduledCall> {
        let mut open: Vec<_> = turn.calls.iter().map(|call| !matches!(call.state, CallState::Done(_))).collect();
        let mut scheduled = Vec::with_capacity(batch.calls.len());
        for BatchCall { request, answer, .. } in batch.calls {
            // Skips a call that a hook invented or inserted twice: it is not among the open ones.
            let is_this = |(i, call): (usize, &PendingCall)| open[i] && call.call_id == request.call.id;
            let Some(index) = turn.calls.iter().enumerate().position(is_this) else { continue };
            open[index] = false;
            match (answer, self.table.get(&request.call.name)) {
                (Some(output), _) => self.answer(turn, index, output),
                (None, Some(entry)) => scheduled.push(ScheduledCall { index, entry: entry.clone(), request }),
                (None, None) => {
                    let (name, names) = (&request.call.name, self.table.names());
                    let message = format!("Tool '{name}' not found. Available tools: {names}");
                    if self.executor.raise_tool_errors {
                        outcome.failed.get_or_insert(Error::tool(message));
                    } else {
                        self.answer(turn, index, ToolOutput::error(message));
                    }
                }
            }
        }
        for index in (0..open.len()).filter(|i| open[*i]) {
            self.answer(turn, index, ToolOutput::error("Not run: a hook dropped the call."));
        }
        scheduled
    }

    /// Checks the arguments of a call. If they are invalid, answers the call with the error and
    /// returns false.
    fn check(&self, turn: &PendingTurn, call: &mut ScheduledCall) -> bool {
        match call.entry.body.check(self.cx(), &call.request.args) {
            Ok(()) => {
                call.request.set_checked();
                true
            }
            Err(e) => {
                self.answer(turn, call.index, ToolOutput::error(e.message().to_owned()));
                false
            }
        }
    }

    async fn run_wave(
        &self,
        turn: &PendingTurn,
        mut ready: Vec<ScheduledCall>,
        outcome: &mut BatchOutcome,
    ) -> Result<()> {
        ready.retain_mut(|call| self.check(turn, call));
        let deadline = Deadline::first(self.cx(), self.step_deadline);
        let (mut writers, mut open_writer) = (Vec::new(), usize::MAX);
        let mut take = |turn: &PendingTurn, index: usize, entry: &ToolEntry, end: CallEnd| {
            let writes = !entry.options.writes.is_empty();
            match self.take(turn, index, end, outcome) {
                Some(output) if writes => writers.push((index, entry.options.clone(), output)),
                Some(output) => self.answer(turn, index, output),
                None if writes => open_writer = open_writer.min(index),
                None => {}
            }
        };
        match ready.pop() {
            None => {}
            // A single call needs no task.
            Some(ScheduledCall { index, entry, request }) if ready.is_empty() => {
                let end = call::run(entry.clone(), request, deadline).await;
                take(turn, index, &entry, end);
            }
            Some(last) => {
                ready.push(last);
                let at_once = self.executor.limits.tool_concurrency.min(ready.len());
                let mut waiting = ready.into_iter();
                let mut running = JoinSet::new();
                let mut start = |running: &mut JoinSet<_>| {
                    if let Some(ScheduledCall { index, entry, request }) = waiting.next() {
                        let cx = request.cx.clone();
                        let run = async move { (index, entry.clone(), call::run(entry, request, deadline).await) };
                        running.spawn(async move { beside_others(&cx, run).await }.in_current_span());
                    }
                };
                (0..at_once).for_each(|_| start(&mut running));
                // When the run is cancelled, the running calls stop on their own and return their
                // checkpoints.
                while let Some(done) = unless_refused(self.cx(), running.join_next()).await? {
                    let (index, entry, end) =
                        done.map_err(|e| Error::new(ErrorKind::Unexpected, "a tool's task failed").with_source(e))?;
                    take(turn, index, &entry, end);
                    start(&mut running);
                }
            }
        }
        self.merge(turn, writers, open_writer);
        // an entry that the journal rejected is missing from the turn
        self.cx().engine().log().check()
    }

    /// Answers the calls that write to the state. Writes are merged in call order, whatever the
    /// order of completion: calls after the first open writer wait for it. Their results stay in
    /// the journal.
    fn merge(&self, turn: &PendingTurn, mut writers: Vec<(usize, Arc<ToolOptions>, ToolOutput)>, open_writer: usize) {
        writers.sort_by_key(|(index, ..)| *index);
        for (index, options, output) in writers.into_iter().take_while(|(index, ..)| *index < open_writer) {
            let output = self.write_state(&turn.calls[index].call_id, &options, output);
            self.answer(turn, index, output);
        }
    }

    /// Adds the outcome of a call to the batch; returns the output of a completed call.
    fn take(&self, turn: &PendingTurn, index: usize, end: CallEnd, outcome: &mut BatchOutcome) -> Option<ToolOutput> {
        let pending = &turn.calls[index];
        // A pending question or suspended sub-agent takes precedence over the error that a layer
        // returned.
        let waits = self.driver.take_waiting(&pending.call_id) || self.driver.has_question_of(&pending.call_id);
        match end {
            CallEnd::Suspended => outcome.suspended = true,
            CallEnd::Cancelled => outcome.cancelled = true,
            CallEnd::Done(_) | CallEnd::Failed(_) if waits => outcome.suspended = true,
            CallEnd::Done(output) => return Some(output),
            CallEnd::Failed(e) => {
                outcome.failed.get_or_insert(e);
            }
        }
        None
    }

    fn end_of(&self, outcome: BatchOutcome) -> Result<BatchEnd> {
        if let Some(e) = outcome.failed {
            let Phase::Tools(turn) = self.cx().engine().log().phase() else { return Err(e) };
            let done = turn.calls.iter().filter(|c| matches!(c.state, CallState::Done(_)));
            let done: Vec<_> = done.map(|c| &*c.call_id).collect();
            return Err(e.with_context("completed", done.join(", ")));
        }
        Ok(match outcome {
            BatchOutcome { cancelled: true, .. } => BatchEnd::Cancelled,
            BatchOutcome { suspended: true, .. } if self.driver.has_questions() => BatchEnd::Suspended,
            BatchOutcome { suspended: true, .. } => BatchEnd::Paused,
            _ => BatchEnd::Answered,
        })
    }
}

/// Returns the state access of a call. It reads the parameters that the model did not supply.
fn access(scheduled: &ScheduledCall) -> Access {
    let (options, has) = (&scheduled.entry.options, given(&scheduled.request.args));
    Access {
        reads: options.reads.iter().filter(|r| !has(&r.param)).map(|r| r.key.clone()).collect(),
        writes: options.writes.iter().map(|w| w.key.clone()).collect(),
        whole_state: options.uses_state,
        serial: options.serial,
    }
}
