//! Access of this executor to the runs that it created.

use std::sync::LazyLock;

use agent_core::{
    RunCx,
    engine::{EngineCx, EngineKey},
};

/// Key of every run that this crate drives.
pub(crate) static KEY: LazyLock<EngineKey> = LazyLock::new(EngineKey::new);

/// Opens a run for its executor.
pub(crate) trait Opened {
    /// Returns the executor's view of the run.
    ///
    /// # Panics
    /// If another executor created the run: a layer replaced the run of a request with a foreign
    /// one.
    fn engine(&self) -> EngineCx<'_>;
}

impl Opened for RunCx {
    fn engine(&self) -> EngineCx<'_> {
        KEY.open(self).expect("a request has the run that it was made for")
    }
}
