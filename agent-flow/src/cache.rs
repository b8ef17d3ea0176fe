//! Cache directory per query.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agent_core::{Error, Result, RunCx};

/// Cache directory of one query, for files that a solver's tools create: a directory per run below
/// the solver's [`cache_dir`](crate::SolverBuilder::cache_dir). A run resumed in another process
/// uses the same directory.
///
/// ```
/// use agent_core::{Result, ToolRequest};
/// use agent_flow::QueryCache;
///
/// fn plot(req: &ToolRequest) -> Result<std::path::PathBuf> {
///     Ok(QueryCache::of(&req.cx)?.join("plot.png"))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct QueryCache(PathBuf);

impl QueryCache {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self(root)
    }

    /// Returns the directory of the run.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the solver has no cache directory.
    pub fn of(cx: &RunCx) -> Result<PathBuf> {
        Ok(Self::below(&cx.resources().get::<Self>()?.0, cx))
    }

    pub(crate) fn create(root: &Path, cx: &RunCx) -> Result<()> {
        let directory = Self::below(root, cx);
        fs::create_dir_all(&directory).map_err(|e| {
            let place = directory.display().to_string();
            Error::config("the query's cache directory cannot be created")
                .with_context("directory", place)
                .with_source(e)
        })
    }

    fn below(root: &Path, cx: &RunCx) -> PathBuf {
        root.join(&*cx.ids().root_run_id)
    }
}
