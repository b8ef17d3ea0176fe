//! The tools as the model sees them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_core::{PerRun, RunCx, ToolSpecs};

use super::{CodeModeConfig, tool};

/// State shared by the middleware and its tool.
pub(super) struct Shared {
    pub(super) config: CodeModeConfig,
    pub(super) views: PerRun<Mutex<View>>,
}

/// The tools that a run was last shown.
#[derive(Default)]
pub(super) struct View {
    offered: ToolSpecs,
    shown: ToolSpecs,
}

impl Shared {
    /// Returns the tools to show to the model: the program tool, and the tools that programs do not
    /// call.
    pub(super) fn show(&self, cx: &RunCx, offered: &ToolSpecs) -> ToolSpecs {
        let views = self.views.of(cx, Mutex::default);
        let mut view = locked(&views);
        if view.offered.as_ptr() != offered.as_ptr() || view.shown.is_empty() {
            let stubs = tool::stubs(&self.config, offered);
            let others = offered.iter().filter(|tool| !self.config.is_callable(tool));
            let shown = others.map(|other| match other.name == self.config.tool {
                true => tool::spec(&self.config, &stubs),
                false => other.clone(),
            });
            view.shown = shown.collect();
            view.offered = offered.clone();
        }
        view.shown.clone()
    }

    /// Returns the tools that the model was last shown, if this process showed them.
    pub(super) fn told(&self, cx: &RunCx) -> Option<ToolSpecs> {
        let view = self.views.get(cx)?;
        let offered = locked(&view).offered.clone();
        Some(offered)
    }
}

fn locked(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}
