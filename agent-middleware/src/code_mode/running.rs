//! Resumes suspended programs and discards abandoned ones.

use agent_core::{AssistantMessage, Block, Message, ModelRequest, ModelResponse, Result, RunCx};

use super::{
    Shared,
    history::{self, Close, Trace},
    interpreter::{Ended, Progress},
    program::{self, Kept, Programs},
    threads::run_all,
};

impl Shared {
    /// Resumes the running programs; returns their next calls, if there are any.
    pub(super) async fn go_on(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Option<ModelResponse>> {
        let kept = Kept::of(cx);
        let mut programs = kept.programs()?;
        let messages: Vec<Message> = cx.history().iter().cloned().collect();
        // The process may have died between the end of a program and this point.
        programs.retain(|id, _| !Trace::of(id, &messages).is_closed());
        if programs.is_empty() {
            kept.clear();
            return Ok(None);
        }
        let (ended, calls) = self.run_on(&kept, &programs, &messages, req).await;
        if !calls.is_empty() {
            return Ok(Some(ModelResponse::new(AssistantMessage::new(calls))));
        }
        let mut closed = cx.history();
        history::close(&ended, &self.config.tool, &mut closed)?;
        // Outer hooks may have rewritten the conversation.
        if history::close(&ended, &self.config.tool, &mut req.messages).is_err() {
            req.messages = closed.clone();
        }
        cx.keep_history(closed, "code_mode").await?;
        kept.clear();
        Ok(None)
    }

    /// Returns the programs that ended, and the calls that the others need next. Programs of one
    /// response end together.
    async fn run_on<'a>(
        &self,
        kept: &Kept,
        programs: &'a Programs,
        messages: &[Message],
        req: &ModelRequest,
    ) -> (Vec<Close<'a>>, Vec<Block>) {
        let traces: Vec<_> = programs.keys().map(|id| Trace::of(id, messages)).collect();
        let jobs: Vec<_> = programs.iter().zip(&traces).map(|((id, p), trace)| kept.job(id, p, trace)).collect();
        let jobs = if req.tools.is_empty() { Vec::new() } else { jobs };
        let mut ran = run_all(&self.config, jobs.iter().flatten().cloned().collect()).await.into_iter();
        let mut jobs = jobs.into_iter();
        let (mut ended, mut calls) = (Vec::new(), Vec::new());
        for ((id, program), trace) in programs.iter().zip(&traces) {
            let done = || kept.done(id, trace);
            let stopped = |why: &str| Ended::error(format!("The program was stopped: {why} {}", done()));
            let end = match jobs.next().map(|job| job.and_then(|_| ran.next())) {
                None => stopped("the run can call no more tools."),
                Some(None) => stopped(
                    "the conversation was shortened meanwhile, and results that it needs are gone. Do what is left in \
                     another program.",
                ),
                // Calls made before an error must not be repeated by the next program.
                Some(Some(Progress::Ended(end))) if end.is_error && !trace.calls.is_empty() => {
                    Ended::error(format!("{}\n[{}]", end.text, done()))
                }
                Some(Some(Progress::Ended(end))) => end,
                Some(Some(Progress::Needs(next))) => {
                    match next.iter().find(|call| req.tools.iter().all(|tool| tool.name != call.tool)) {
                        Some(call) => stopped(&format!("there is no tool '{}' any more.", call.tool)),
                        None => {
                            calls.extend(program::calls(id, trace.calls.len(), next).map(Block::ToolCall));
                            continue;
                        }
                    }
                }
            };
            ended.push(Close { id, code: &program.code, ended: end });
        }
        (ended, calls)
    }

    /// Ends the programs that an earlier run left, unless this run resumes them.
    pub(super) fn close_left(&self, cx: &RunCx) -> Result<()> {
        let kept = Kept::of(cx);
        let goes_on = !kept.is_empty()
            && (cx.step() > 0 || kept.programs()?.values().any(|program| program.run == cx.ids().run_id));
        if goes_on { Ok(()) } else { self.close(cx, "the run that it belonged to did not go on.") }
    }

    /// Ends the running programs.
    pub(super) fn close(&self, cx: &RunCx, why: &str) -> Result<()> {
        let kept = Kept::of(cx);
        let mut programs = kept.programs()?;
        let mut closed = cx.history();
        let messages: Vec<Message> = closed.iter().cloned().collect();
        programs.retain(|id, _| !Trace::of(id, &messages).is_closed());
        let in_history = history::under_way(&self.config.tool, &messages);
        let mut ids: Vec<_> = programs.keys().chain(&in_history).map(String::as_str).collect();
        ids.sort_unstable();
        ids.dedup();
        let ended = ids.into_iter().map(|id| {
            let text = format!("The program was stopped: {why} {}", kept.done(id, &Trace::of(id, &messages)));
            Close { id, code: programs.get(id).map_or("", |program| &program.code), ended: Ended::error(text) }
        });
        let ended: Vec<_> = ended.collect();
        if !ended.is_empty() {
            history::close(&ended, &self.config.tool, &mut closed)?;
            cx.replace_history(closed, "code_mode");
        }
        if !kept.is_empty() {
            kept.clear();
        }
        Ok(())
    }
}
