//! One model call, and the handling of its response.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Chunk, Error, ErrorKind, EventKind, Exit, ExitReason, FinishReason, ModelRequest,
    ModelResponse, Result, ToolOutput, ToolSpecs, Verdict, engine::Hook, journal::EntryBody,
};

use super::{Active, Deadline, Stop, guard::guarded, table};
use crate::engine::Opened;

impl Active<'_> {
    /// Calls the model through its stack, and streams chunks to observers meanwhile.
    pub(super) async fn call_model(&self, tools: ToolSpecs) -> Result<ModelResponse> {
        let cx = self.cx();
        let mut request = ModelRequest::new(cx.clone());
        request.model = Some(self.executor.model_info.clone());
        request.system = self.system.clone();
        request.tools = tools;
        request.params = self.params.clone();
        request.stream = self.stream;
        request.resumed = self.resumed;
        if self.stream || cx.engine().emitter().is_observed() {
            let emitter = cx.engine().emitter().clone();
            request.sink = request.sink.with_observer(move |chunk| emitter.emit(EventKind::Chunk(chunk.clone())));
        }
        let answered = tokio::select! {
            biased;
            answered = guarded(cx, "what is around the model", self.executor.model.run(request)) => answered,
            late = Deadline::passed(self.step_deadline) => Err(late.error()),
        };
        // A pending question takes precedence over the error that a layer returned.
        if self.driver.has_questions() || self.driver.has_waiting() {
            return Err(Error::new(ErrorKind::Interrupted, "waiting for an answer"));
        }
        answered
    }

    /// True if the model returned neither content nor calls.
    pub(super) fn is_silent(&self, response: &ModelResponse) -> bool {
        let ModelResponse { message, finish, verdict, .. } = response;
        let is_part = matches!(finish, FinishReason::Length | FinishReason::ContentFilter | FinishReason::Paused);
        let says_something = message.has_content() || message.has_calls();
        *verdict == Verdict::Proceed && !is_part && !says_something
    }

    /// Discards an empty response before the model is called once more. Some models return one now
    /// and then, and the next call usually succeeds. Both calls belong to the same step: the
    /// journal holds both responses, so that a run that stops between the two does not call a third
    /// time.
    pub(super) fn take_back(&self, silent: &ModelResponse) {
        if !silent.message.is_empty() {
            self.cx().emit(EventKind::Chunk(Chunk::Restart));
        }
        self.cx().emit(EventKind::Warning { message: "the model said nothing: it is asked once more".into() });
    }

    /// Accepts a response: its calls come next, or the run ends, or the model is called again.
    pub(super) async fn accept(&mut self, step: u32, response: ModelResponse) -> Result<Option<Stop>> {
        self.unanswered = None;
        let is_silent = self.is_silent(&response);
        let ModelResponse { mut message, finish, verdict, .. } = response;
        agent_core::engine::unique_ids(&mut message);
        self.clean_names(&mut message);
        let truncated = self.mend_arguments(&mut message, &finish);
        if message.has_calls() && verdict != Verdict::Finish {
            self.cx().engine().log().record_accepted(step, &message, None);
            self.refuse_truncated(&message, &truncated);
            return Ok(None);
        }
        let reason = match (verdict, finish) {
            (Verdict::Again, _) | (Verdict::Proceed, FinishReason::Paused) => None,
            (Verdict::Finish, _) => Some(ExitReason::Verdict),
            (Verdict::Proceed, FinishReason::Length) => Some(ExitReason::Length),
            (Verdict::Proceed, FinishReason::ContentFilter) => Some(ExitReason::ContentFilter),
            (Verdict::Proceed, _) if is_silent => Some(ExitReason::Empty),
            (Verdict::Proceed, _) => Some(ExitReason::Text),
        };
        let answer = || if message.has_text() { message.text() } else { message.refusal().unwrap_or_default() };
        let exit = reason.map(|reason| Exit::new(reason, answer()));
        if message.has_calls() {
            self.cx().engine().log().record_accepted(step, &message, None);
            self.refuse_calls(step, &message, exit.clone());
        } else {
            self.cx().engine().log().record_accepted(step, &message, exit.clone());
        }
        match exit {
            Some(exit) => self.exit(exit).await,
            None => Ok(None),
        }
    }

    /// Calls the `on_exit` hooks, and checks for more steering messages. Returns `None` if the run
    /// continues.
    pub(super) async fn exit(&mut self, mut exit: Exit) -> Result<Option<Stop>> {
        let cx = self.cx().clone();
        let hooks = async {
            let mut go_on = false;
            for (i, m) in self.list.iter().enumerate().rev() {
                let at = cx.engine().in_hook(Hook::OnExit, i);
                go_on |= cx.engine().run_hook(&**m, m.on_exit(&at, &mut exit)).await? == Verdict::Again;
            }
            Ok(go_on)
        };
        let go_on = guarded(&cx, "on_exit", hooks).await?;
        if go_on {
            cx.engine().log().record(EntryBody::ExitDeclined {});
            return Ok(None);
        }
        self.steer_as_recorded()?;
        // At the step limit the answer stands: the run's end takes the messages along.
        let is_last = self.cx().step() >= self.executor.limits.steps && !self.executor.limits.final_answer;
        // A durable engine records whether a message was waiting, so that the run ends there again.
        let keeps = cx.engine().log().steps().keeps();
        let has_more = !is_last && (keeps || !cx.engine().inbox().close_if_empty()) && self.take_steering().await?;
        Ok((!has_more).then_some(Stop::Finished(exit.reason, exit.answer)))
    }

    /// Removes control tokens and prefixes of a model's own format from names of tools, such as
    /// `name<|channel|>commentary` and `functions.name`, if the remaining name is on offer.
    fn clean_names(&self, message: &mut AssistantMessage) {
        const PREFIXES: [&str; 3] = ["functions.", "functions:", "default_api."];
        let clean = |name: &str| {
            let plain = name.split("<|").next().unwrap_or_default().trim();
            let plain = PREFIXES.iter().find_map(|prefix| plain.strip_prefix(prefix)).unwrap_or(plain);
            (plain != name && self.table.get(name).is_none() && self.table.get(plain).is_some()).then(|| plain.into())
        };
        if message.calls().any(|call| clean(&call.name).is_some()) {
            for block in message.blocks_mut() {
                if let Block::ToolCall(call) = block
                    && let Some(name) = clean(&call.name)
                {
                    (call.name, call.raw) = (name, None);
                }
            }
        }
    }

    /// Replaces arguments that are not a JSON object with their repaired form. Providers would
    /// reject the message otherwise. Returns the ids of the calls whose arguments were cut off.
    fn mend_arguments(&self, message: &mut AssistantMessage, finish: &FinishReason) -> Vec<Arc<str>> {
        let broken = |arguments: &str| {
            let arguments = arguments.trim_start();
            let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok();
            !(arguments.is_empty() || arguments.starts_with('{') && is_json())
        };
        let mut truncated: Vec<_> = self.last_at_limit(message, finish).into_iter().collect();
        if !message.calls().any(|call| broken(&call.arguments)) {
            return truncated;
        }
        for block in message.blocks_mut() {
            let Block::ToolCall(call) = block else { continue };
            if broken(&call.arguments) {
                let parsed = table::parse(self.table.get(&call.name), &call.arguments);
                if parsed.is_truncated {
                    truncated.push(call.id.clone());
                }
                if let Some(repair) = parsed.repair {
                    let message = format!("arguments of call '{}' to '{}' were repaired: {repair}", call.id, call.name);
                    self.cx().emit(EventKind::Warning { message });
                }
                call.arguments = parsed.value.to_string();
                call.raw = None;
            }
        }
        truncated
    }

    /// Returns the call with which an answer ends that reached its output limit. Its arguments are
    /// not trusted even if they are complete JSON: some servers close what they cut off.
    fn last_at_limit(&self, message: &AssistantMessage, finish: &FinishReason) -> Option<Arc<str>> {
        let Some(Block::ToolCall(last)) = message.blocks().last().filter(|_| *finish == FinishReason::Length) else {
            return None;
        };
        let entry = self.table.get(&last.name)?;
        (!table::accepts_truncated(&entry.options)).then(|| last.id.clone())
    }

    /// Answers the calls whose arguments were cut off, so that they do not run.
    fn refuse_truncated(&self, message: &AssistantMessage, truncated: &[Arc<str>]) {
        for call in message.calls().filter(|call| truncated.contains(&call.id)) {
            let output = ToolOutput::error(
                "Not run: the arguments of this call were cut off at the output limit. Call the tool again with shorter \
                 arguments, for example in several smaller calls.",
            );
            let message = format!("arguments of call '{}' to '{}' were cut off: it is not run", call.id, call.name);
            self.cx().emit(EventKind::Warning { message });
            self.cx().engine().log().record_answered(&call.id, &call.name, &output);
        }
    }

    /// Answers the pending calls of a run that was finished, so that the history stays paired.
    fn refuse_calls(&self, step: u32, message: &AssistantMessage, exit: Option<Exit>) {
        let log = self.cx().engine().log();
        for call in message.calls() {
            log.record_answered(&call.id, &call.name, &ToolOutput::error("Not run: the run was finished."));
        }
        log.record_turn_ended(step, Default::default(), exit);
    }
}

/// Returns the message without its calls, for a response after which no tool can run.
pub(super) fn without_calls(mut message: AssistantMessage) -> AssistantMessage {
    if message.has_calls() {
        message.blocks_mut().retain(|block| !matches!(block, Block::ToolCall(_)));
    }
    message
}
