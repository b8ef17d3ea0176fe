//! What this executor may do with the runs that it made.

use std::sync::LazyLock;

use agent_core::{
    RunCx,
    engine::{EngineCx, EngineKey},
};

/// The key of every run that this crate drives.
pub(crate) static KEY: LazyLock<EngineKey> = LazyLock::new(EngineKey::new);

/// Opens a run for its executor.
pub(crate) trait Opened {
    /// The run, as its executor sees it.
    ///
    /// # Panics
    /// If another executor made the run: a layer put it in the place of a request's own.
    fn engine(&self) -> EngineCx<'_>;
}

impl Opened for RunCx {
    fn engine(&self) -> EngineCx<'_> {
        KEY.open(self).expect("a request has the run that it was made for")
    }
}
