//! Repeated requests with results of tool calls.

use agent::{
    event::Position,
    journal::{EntryBody, each_entry},
};

use crate::{ApiError, App, FoundRun, client_tools::CallResult, speech::own_id};

/// Returns the position of the run when it took these results; none if it has not taken them.
///
/// # Errors
/// 422 if it took other results for the same calls; the errors of the store.
pub(super) async fn taken(app: &App, run: &FoundRun, results: &[CallResult]) -> Result<Option<Position>, ApiError> {
    let Some(record) = run.record().await? else { return Ok(None) };
    let (mut rested, mut taken, mut differs) = (0, None, false);
    each_entry(&**app.journal(), run.store_name(), record.seq, |entry| {
        if *entry.run != *run.id() {
            return;
        }
        match &entry.body {
            EntryBody::RunEnded { .. } => rested = entry.seq,
            EntryBody::Answered { id, answer, .. } => {
                let call = id.split('/').next().unwrap_or_default();
                if let Some(result) = results.iter().rfind(|result| result.call == call || own_id(&result.call) == call)
                {
                    taken.get_or_insert(Position { seq: rested, after: 0 });
                    differs |= answer["result"] != *result.text;
                }
            }
            _ => {}
        }
    })
    .await?;
    match differs {
        true => Err(ApiError::idempotency_mismatch()),
        false => Ok(taken),
    }
}
