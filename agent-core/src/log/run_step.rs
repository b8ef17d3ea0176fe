//! A sub-agent's run as a durable step.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use super::{RunLog, call::SHARED};
use crate::{
    error::{Error, Result},
    journal::{EntryBody, KeptCall, KeptRun, StepBody, StepKind, StepResult, durable::another_kind, each_entry},
    state::{Finished, RunEnd},
    tooling::ToolOutput,
};

impl RunLog {
    /// Executes a sub-agent's run as a [step](crate::engine::Durable::child). Only a finished run's
    /// result is persisted.
    ///
    /// # Errors
    /// Those of the run and of the engine.
    pub(crate) async fn run_step(
        &self,
        key: &str,
        run: &Arc<str>,
        drive: impl Future<Output = Result<RunEnd>> + Send,
    ) -> Result<RunEnd> {
        let steps = self.steps();
        if !steps.keeps() && !self.is_replay() {
            return drive.await;
        }
        let (mut is_new, mut unfinished) = (false, None);
        let body: StepBody<'_> = Box::pin(async {
            is_new = true;
            match drive.await? {
                RunEnd::Finished(finished) => Ok(StepResult::Run(Box::new(self.kept_run(*finished).await?))),
                end => {
                    unfinished = Some(end);
                    Err(Error::waiting(Vec::new()))
                }
            }
        });
        let kind = StepKind::Run { key: key.to_owned(), run: run.clone() };
        let kept = steps.named(&self.0.ids.run_id, kind, async |step| steps.engine().child(step, body).await).await;
        match (kept, unfinished) {
            (_, Some(end)) => Ok(end),
            (Ok(StepResult::Run(kept)), _) => {
                let KeptRun { finished, entries, globals } = *kept;
                if !is_new {
                    let descendants = KeptCall { descendants: entries, ..KeptCall::new(Ok(ToolOutput::default())) };
                    let _ = self.take_over(descendants);
                    self.take_over_globals(globals);
                }
                Ok(RunEnd::Finished(Box::new(finished)))
            }
            (kept, _) => Err(kept.err().unwrap_or_else(another_kind)),
        }
    }

    /// Collects the persistent result of a child run over all of its legs.
    async fn kept_run(&self, finished: Finished) -> Result<KeptRun> {
        let began = self.look_at_whole_session(|index| index.began(&finished.ids.run_id)).await?;
        let (mut tree, mut entries) = (HashSet::from([finished.ids.run_id.clone()]), Vec::new());
        let (mut names, session) = (BTreeSet::new(), &self.0.ids.session);
        each_entry(&**self.journal(), session, began.saturating_sub(1), |entry| {
            if let EntryBody::RunStarted { ids, .. } = &entry.body
                && ids.parent_run_id.as_ref().is_some_and(|above| tree.contains(above))
            {
                tree.insert(entry.run.clone());
            }
            if tree.contains(&entry.run) {
                if let EntryBody::StateChanged { globals, .. } = &entry.body {
                    names.extend(globals.keys().cloned());
                }
                entries.push(entry.clone());
            }
        })
        .await?;
        let mut now = self.0.globals.kept();
        let values = names.into_iter().map(|name| (name.clone(), now.remove(&name)));
        let globals = self.steps().kept(SHARED, values);
        Ok(KeptRun { finished, entries, globals })
    }
}
