//! The fold: applies an entry to the state of its run.

use std::sync::Arc;

use crate::{
    amounts::Amounts,
    history::{History, NO_RESULT, RESULT_LOST, UNKNOWN_OUTCOME},
    journal::{Entry, EntryBody},
    message::{AssistantMessage, Message, ToolCall, ToolMessage},
    state::{
        Answer, Begun, CallState, ChildRun, Exit, ExitReason, PendingCall, PendingTurn, Phase, RunIds, RunState,
        RunStatus, id_within,
    },
    tooling::{CallResult, Effect, ToolOutput},
};

impl RunState {
    /// Creates the state of a run that begins with this entry and with its agent's earlier
    /// conversation.
    pub(crate) fn begin(ids: &RunIds, fingerprint: &str, history: History, time: u64) -> Self {
        let mut state = Self::new(ids.clone(), fingerprint);
        state.attempt = Some(ids.run_id.clone()); // until it resumes as another attempt
        state.history = history;
        state.run_meta.last_time = time;
        state
    }

    /// Applies the next entry of the run; entries must be applied in order.
    pub fn apply(&mut self, entry: &Entry) {
        self.tick(entry);
        match &entry.body {
            EntryBody::RunResumed { attempt, .. } => self.resume(attempt),
            EntryBody::Imported { state } => self.import(state),
            EntryBody::RunEnded { status, usage, answer, .. } => {
                self.usage = **usage;
                self.end(status, answer.as_deref());
            }
            EntryBody::MessageAppended { message } => self.append(message),
            EntryBody::HistoryReplaced { history, .. } => self.history = history.clone(),
            EntryBody::ModelFinished { response, .. } => {
                self.usage += response.usage;
                self.leave_exit();
                self.answered.push(response.clone());
            }
            EntryBody::ModelAccepted { step, message, exit } => {
                self.accept(*step, message.as_ref(), exit.as_deref().cloned());
            }
            EntryBody::ExitDeclined {} => self.leave_exit(),
            EntryBody::StopRequested { reason } => drop(self.stop.get_or_insert_with(|| reason.clone().into())),
            EntryBody::ToolStarted { call_id, name, effect, attempt } => {
                self.begun.insert(call_id.to_string(), Begun::new(*effect, attempt.clone()));
                self.run_meta.counted.entry(call_id.clone()).or_insert_with(|| name.clone());
                self.spend(Amounts::none().tool_calls(1));
            }
            EntryBody::ToolSuspended { call_id } => drop(self.begun.remove(&**call_id)),
            EntryBody::ToolFinished { call_id, output } => {
                self.begun.remove(&**call_id);
                self.finished.insert(call_id.to_string(), output.clone());
            }
            EntryBody::ToolAnswered { call_id, output, .. } => self.answer(call_id, output.as_ref()),
            EntryBody::TurnEnded { changed, exit, .. } => {
                changed.iter().for_each(|(call_id, output)| self.set_done(call_id, output.clone()));
                self.end_turn(exit.as_deref().cloned());
            }
            EntryBody::Decided { name, value, beginning } => {
                let at = if *beginning { self.beginning } else { self.decisions.len() };
                self.decisions.insert(at, (name.clone(), value.clone()));
                self.beginning += usize::from(*beginning);
            }
            EntryBody::Asked { question } => {
                self.questions.retain(|asked| asked.id != question.id);
                self.answers.remove(&question.id); // an earlier answer: the question was asked again
                self.questions.push((**question).clone());
            }
            EntryBody::Answered { id, answer, by, digest } => {
                self.questions.retain(|asked| *asked.id != **id);
                self.answers.insert(id.to_string(), Answer::recorded(answer, digest, by.as_deref()));
            }
            EntryBody::StateChanged { state, .. } => self.state.extend(state.clone()),
            EntryBody::BudgetReserved { call, amounts } => drop(self.run_meta.reserved.insert(*call, *amounts)),
            EntryBody::BudgetSettled { call, amounts } => {
                self.run_meta.reserved.remove(call);
                self.spend(*amounts);
            }
            EntryBody::SideModelFinished { usage } => self.usage += **usage,
            EntryBody::SubAgentLinked { call_id, hook, n, place, key, run, background } => {
                let child = ChildRun::new(call_id.clone(), key.as_str(), run.clone());
                let (hook, place) = (hook.clone(), place.clone());
                self.run_meta.children.push(ChildRun { hook, n: *n, place, background: *background, ..child });
                self.sub_agents = self.sub_agents.saturating_add(1);
            }
            EntryBody::SubAgentReported { run, message } => {
                self.run_meta.reported.insert(run.clone());
                self.questions.retain(|asked| id_within(&asked.id, run).is_none());
                self.steering.extend(message.clone());
            }
            EntryBody::Steered { message } => self.steering.push(message.clone()),
            EntryBody::RunStarted { .. }
            | EntryBody::Undone { .. }
            | EntryBody::Titled { .. }
            | EntryBody::Anchored { .. }
            | EntryBody::Unknown(_) => {} // not part of a run's state
        }
    }

    /// True if the run can be resumed.
    pub(crate) fn is_open(&self) -> bool {
        !self.run_meta.undone && !matches!(self.run_meta.status, Some(RunStatus::Finished(_)))
    }

    /// Returns the conversation including an open turn. A call without an answer gets the error result
    /// [`RESULT_LOST`] if its tool gave a result, [`UNKNOWN_OUTCOME`] if it was begun and may have had
    /// its effect, or else [`NO_RESULT`].
    pub(crate) fn closed_history(&self) -> History {
        let mut history = self.history.clone();
        if let Phase::Tools(turn) = &self.phase {
            push_turn(&mut history, &turn.message, self.closed_turn(turn));
        }
        history
    }

    /// Reverts to an earlier conversation: everything the run did since is undone.
    pub(crate) fn undo(&mut self, history: History) {
        self.history = history;
        self.phase = Phase::BeforeModel;
        self.answered.clear();
        self.finished.clear();
        self.stop = None;
    }

    /// Adds the time since the last entry to the run's active time. Time between two attempts does
    /// not count.
    fn tick(&mut self, entry: &Entry) {
        if !matches!(entry.body, EntryBody::RunResumed { .. }) {
            self.elapsed_ms += entry.time.saturating_sub(self.run_meta.last_time);
        }
        self.run_meta.last_time = entry.time;
    }

    fn import(&mut self, state: &Self) {
        let phase = match std::mem::take(&mut self.phase) {
            turn @ Phase::Tools(_) => turn,
            _ => state.phase.clone(),
        };
        let (history, values) = (std::mem::take(&mut self.history), std::mem::take(&mut self.state));
        let mut run_meta = std::mem::take(&mut self.run_meta);
        run_meta.gone = state.tree_usage;
        run_meta.gone -= state.usage;
        *self = Self { phase, history, state: values, run_meta, ..state.clone() };
        self.count_open_calls();
    }

    fn resume(&mut self, attempt: &str) {
        self.attempt = Some(attempt.into());
        self.resumed = self.resumed.saturating_add(1);
        self.run_meta.status = None;
        self.steering.clear(); // messages still pending are recorded again
        std::mem::take(&mut self.run_meta.reserved).into_values().for_each(|lost| self.spend(lost));
    }

    fn end(&mut self, status: &RunStatus, answer: Option<&str>) {
        if let RunStatus::Finished(reason) = status {
            let answer = match (answer, &self.phase) {
                (Some(answer), _) => answer.to_owned(),
                (None, Phase::Exit(exit) | Phase::Ended(exit)) => exit.answer.clone(),
                _ => String::new(),
            };
            if !matches!(self.phase, Phase::Tools(_)) {
                self.phase = Phase::Ended(Exit::new(reason.clone(), answer));
            }
        }
        self.run_meta.status = Some(status.clone());
    }

    fn append(&mut self, message: &Message) {
        if let Some(at) = self.steering.iter().position(|waits| waits == message) {
            self.steering.remove(at);
        }
        self.close_turn();
        push(&mut self.history, message.clone());
        // A message makes a run that is about to finish continue; at the step limit the run only
        // appends it.
        if matches!(&self.phase, Phase::Exit(exit) if exit.reason != ExitReason::StepLimit) {
            self.phase = Phase::BeforeModel;
        }
    }

    fn accept(&mut self, step: u32, message: Option<&AssistantMessage>, exit: Option<Exit>) {
        self.close_turn();
        self.end_step();
        self.step = step;
        let finished = self.answered.drain(..).next_back().map(|response| response.message.clone());
        match message.cloned().or(finished) {
            Some(message) if message.has_calls() => self.phase = Phase::Tools(PendingTurn::new(message)),
            Some(message) if !message.is_empty() => {
                push(&mut self.history, Message::Assistant(message));
                self.set_exit(exit);
            }
            _ => self.set_exit(exit),
        }
    }

    fn answer(&mut self, call_id: &Arc<str>, output: Option<&ToolOutput>) {
        self.questions.retain(|asked| id_within(&asked.id, call_id).is_none());
        self.begun.remove(&**call_id);
        let finished = self.finished.remove(&**call_id);
        if let Some(name) = self.run_meta.counted.remove(call_id) {
            *self.tool_calls.entry(name.to_string()).or_default() += 1;
        }
        if let Some(output) = output.cloned().or(finished) {
            self.set_done(call_id, output);
        }
    }

    fn set_done(&mut self, call_id: &Arc<str>, output: ToolOutput) {
        let Phase::Tools(turn) = &mut self.phase else { return };
        if let Some(call) = turn.calls.iter_mut().find(|call| call.call_id == *call_id) {
            call.state = CallState::Done(output);
        }
    }

    fn end_turn(&mut self, exit: Option<Exit>) {
        let (step, phase) = (self.step, &self.phase);
        self.answers.retain(|id, _| {
            let is_calls = |turn: &PendingTurn| turn.calls.iter().any(|call| id_within(id, &call.call_id).is_some());
            let is_steps = id_within(id, &format!("step-{step}")).is_some();
            !is_steps && !matches!(phase, Phase::Tools(turn) if is_calls(turn))
        });
        self.close_turn();
        self.end_step();
        self.set_exit(exit);
    }

    /// Appends an open turn to the conversation.
    fn close_turn(&mut self) {
        if let Phase::Tools(turn) = &self.phase {
            let (message, results) = (turn.message.clone(), self.closed_turn(turn));
            push_turn(&mut self.history, &message, results);
            self.phase = Phase::BeforeModel;
        }
    }

    /// Clears the questions, decisions and results of the step, or of its model call, which is now
    /// complete.
    fn end_step(&mut self) {
        self.questions.clear();
        self.decisions.truncate(self.beginning);
        self.begun.clear();
        self.finished.clear();
        self.run_meta.counted.clear();
        self.run_meta.earlier = self.run_meta.children.len();
    }

    fn set_exit(&mut self, exit: Option<Exit>) {
        self.phase = match exit {
            None => Phase::BeforeModel,
            // At the step limit no hook runs.
            Some(exit) if exit.reason == ExitReason::StepLimit => Phase::Ended(exit),
            Some(exit) => Phase::Exit(exit),
        };
    }

    fn leave_exit(&mut self) {
        if matches!(self.phase, Phase::Exit(_) | Phase::Ended(_)) {
            self.phase = Phase::BeforeModel;
        }
    }

    fn spend(&mut self, amounts: Amounts) {
        self.spent = self.spent.plus(amounts);
    }
}

/// Appends a message. Entries of a foreign or damaged journal may have unpaired calls and results;
/// the repair loses nothing that a provider would accept.
fn push(history: &mut History, message: Message) {
    if history.push(message.clone()).is_err() {
        *history = History::import(history.iter().cloned().chain([message])).0;
    }
}

impl RunState {
    /// Returns the messages of an open turn: the model's, and the result of each call.
    fn closed_turn(&self, turn: &PendingTurn) -> Vec<ToolMessage> {
        let calls = turn.message.calls().zip(&turn.calls);
        let result = |(call, pending): (&ToolCall, &PendingCall)| {
            let (id, name) = (call.id.clone(), call.name.clone());
            let text = match (&pending.state, self.begun.get(&*call.id)) {
                (CallState::Done(output), _) => return CallResult::new(id, name, output.clone()).to_message(),
                _ if self.finished.contains_key(&*call.id) => RESULT_LOST,
                (_, Some(begun)) if begun.effect != Effect::Pure => UNKNOWN_OUTCOME,
                _ => NO_RESULT,
            };
            ToolMessage::text(id, name, text, true)
        };
        calls.map(result).collect()
    }
}

/// Appends a turn with its results.
fn push_turn(history: &mut History, message: &AssistantMessage, results: Vec<ToolMessage>) {
    if history.push_turn(message.clone(), results.clone()).is_err() {
        let turn = std::iter::once(Message::Assistant(message.clone())).chain(results.into_iter().map(Message::Tool));
        *history = History::import(history.iter().cloned().chain(turn)).0;
    }
}
