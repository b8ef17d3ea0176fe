//! Performs one compaction: runs the strategy, measures, archives and reports.

use std::collections::HashSet;

use agent_core::{
    EventKind, History, Message, Result, RunCx,
    event::{Compaction, CompactionMode},
};

use super::{ARCHIVED, ContextCompaction, Task, Unit, answers, token_count::Size};
use crate::{archive::Archived, side_call::ends_the_run};

/// Reason for a compaction and the context window it must fit.
pub(super) struct Cause<'a> {
    pub(super) mode: CompactionMode,
    pub(super) trigger: String,
    pub(super) focus: Option<&'a str>,
    pub(super) window: Option<u64>,
}

impl ContextCompaction {
    /// Returns `history` in compacted form, if that is smaller.
    pub(super) async fn compact(
        &self,
        cx: &RunCx,
        history: &History,
        size: Size,
        cause: Cause<'_>,
    ) -> Result<Option<History>> {
        let mode = cause.mode;
        let strategy = if mode == CompactionMode::Emergency { &self.emergency } else { &self.strategy };
        cx.emit(EventKind::CompactionStarted { mode, trigger: cause.trigger });
        let units = Unit::split(history);
        let mut task = self.task(cx, mode, size, cause.window);
        task.focus = cause.focus;
        let before = task.total(&units);
        if mode == CompactionMode::Emergency {
            // the window is evidently smaller than assumed
            task.target = task.target.min(before / 2);
        }
        let report = Compaction::new(mode, strategy.name(), history.len(), before);
        let smaller = match strategy.compact(&task, units).await {
            Err(e) if ends_the_run(e.kind()) => return Err(e),
            Err(e) => Err(format!("{e}")),
            Ok(units) => {
                let after = task.total(&units);
                let joined = Unit::join(units).map_err(|e| e.to_string());
                joined.and_then(|smaller| match after < before {
                    true => Ok((smaller, after)),
                    false => Err("it would not have become smaller".into()),
                })
            }
        };
        match smaller {
            Err(why) => {
                cx.emit(EventKind::Compaction(report.failed(why)));
                Ok(None)
            }
            Ok((smaller, after)) => {
                self.keep_removed(cx, history, &smaller).await;
                cx.emit(EventKind::Compaction(report.shrunk_to(smaller.len(), after)));
                Ok(Some(smaller))
            }
        }
    }

    fn task<'a>(&'a self, cx: &'a RunCx, mode: CompactionMode, size: Size, window: Option<u64>) -> Task<'a> {
        let part = |window: u64, part: f64| ((window as f64 * part) as u64).saturating_sub(size.around);
        let target = window.map_or(size.messages / 2, |window| part(window, self.config.target));
        let mut task = Task::new(cx, &*self.counter, target).with_pins(self.config.pins).with_mode(mode);
        task.most = window.map(|window| part(window, self.config.most));
        task.factor = size.factor;
        task.archive = self.archive.is_some();
        task
    }

    /// Archives the messages that are no longer in the conversation. A failure is only reported.
    async fn keep_removed(&self, cx: &RunCx, before: &History, after: &History) {
        let Some(archive) = &self.archive else { return };
        let kept: HashSet<_> = after.iter().map(place).collect();
        let removed = before.iter().filter(|message| !kept.contains(&place(message)));
        let removed = removed.filter_map(Archived::of).collect();
        let put = match archive.put(cx, removed).await {
            Ok(()) => answers(cx).set(&ARCHIVED, &true),
            failed => failed,
        };
        if let Err(e) = put {
            let message = format!("compaction: what was removed could not be archived: {e}");
            cx.emit(EventKind::Warning { message });
        }
    }
}

/// Returns the address of a message's content: equal for a message that was left unchanged.
fn place(message: &Message) -> usize {
    match message {
        Message::System(m) => m.parts().as_ptr().addr(),
        Message::User(m) => m.parts().as_ptr().addr(),
        Message::Assistant(m) => m.blocks().as_ptr().addr(),
        Message::Tool(m) => m.parts().as_ptr().addr(),
    }
}

/// Returns `view` with its prefix `from` replaced by `to`; `None` if `view` does not extend `from`.
pub(super) fn carried(view: &History, from: &History, to: &History) -> Result<Option<History>> {
    if !view.continues(from) {
        return Ok(None);
    }
    if view.len() == from.len() {
        return Ok(Some(to.clone()));
    }
    History::from_messages(to.iter().chain(view.iter().skip(from.len())).cloned()).map(Some)
}
