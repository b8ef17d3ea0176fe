//! List of tasks.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    rpc::RpcError,
    task::{of_view, state},
    version::{Version, state_name},
};
use crate::{App, Caller, FoundRun, RunView, app::RunsQuery, clock::timestamp};

/// Default and maximum of tasks per page.
const PAGE: usize = 50;
const LONGEST: usize = 100;

/// Maximum of tasks that are listed, the most recent ones.
const MOST: usize = 1000;

/// Parameters of `ListTasks`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Query {
    context_id: Option<String>,
    status: Option<String>,
    page_size: Option<i64>,
    page_token: Option<String>,
    status_timestamp_after: Option<String>,
    include_artifacts: bool,
    history_length: Option<i64>,
}

/// Lists the caller's tasks of an agent, those whose state changed last first.
pub(super) async fn list(app: &App, caller: &Caller, agent: &str, query: &Query) -> Result<Value, RpcError> {
    let size = query.page_size.unwrap_or_else(|| i64::try_from(PAGE).unwrap_or_default());
    let size = usize::try_from(size).ok().filter(|size| (1..=LONGEST).contains(size));
    let size = size.ok_or_else(|| RpcError::params(format!("the page size must be from 1 to {LONGEST}")))?;
    if query.history_length.is_some_and(|length| length < 0) {
        return Err(RpcError::params("the history length must not be negative"));
    }
    let status = query.status.as_deref().filter(|status| !status.is_empty() && *status != "TASK_STATE_UNSPECIFIED");
    if status.is_some_and(|status| !STATES.map(state_name).iter().any(|known| known == status)) {
        return Err(RpcError::params("unknown state"));
    }
    let after = query.status_timestamp_after.as_deref().filter(|after| !after.is_empty());
    if after.is_some_and(|after| !is_time(after)) {
        return Err(RpcError::params("the time must have the form 2026-01-31T12:00:00.000Z"));
    }
    let session = query.context_id.as_deref().filter(|context| !context.is_empty());
    let wanted = RunsQuery { session, agent: Some(agent), limit: MOST, ..RunsQuery::default() };
    let mut views = app.list(caller, wanted).await?;
    views.retain(|view| status.is_none_or(|status| state_name(state(view)) == status));
    // Times of one form compare like their texts.
    views.retain(|view| after.is_none_or(|after| timestamp(changed(view)).as_str() > after));
    views.sort_by(|one, two| place(two).cmp(&place(one)));
    let total = views.len();
    let begin = match query.page_token.as_deref().filter(|token| !token.is_empty()) {
        None => 0,
        Some(token) => {
            let (time, run) = token.split_once('.').ok_or_else(|| RpcError::params("unknown page token"))?;
            let time = time.parse::<u64>().map_err(|_| RpcError::params("unknown page token"))?;
            views.partition_point(|view| place(view) >= (time, run))
        }
    };
    let page = &views[begin..(begin + size).min(total)];
    let next = page.last().filter(|_| begin + page.len() < total).map(|last| format!("{}.{}", changed(last), last.run));
    let mut tasks = Vec::new();
    for view in page {
        tasks.push(shown(app, caller, view, query.include_artifacts).await?);
    }
    Ok(json!({"tasks": tasks, "nextPageToken": next.unwrap_or_default(), "pageSize": page.len(), "totalSize": total}))
}

const STATES: [&str; 8] =
    ["submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"];

/// Time at which the state changed last.
fn changed(view: &RunView) -> u64 {
    view.ended.unwrap_or(view.started)
}

fn place(view: &RunView) -> (u64, &str) {
    (changed(view), &view.run)
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T'
}

async fn shown(app: &App, caller: &Caller, view: &RunView, with_artifacts: bool) -> Result<Value, RpcError> {
    let mut task = of_view(view);
    if with_artifacts {
        // Lists hold no answers.
        let found: FoundRun = app.run(caller, &view.run, Some(&view.session)).await?;
        task = of_view(&found.view().await?);
    }
    let mut task = Version::V10.shape(task);
    if let Some(task) = task.as_object_mut() {
        match with_artifacts {
            true => drop(task.entry("artifacts").or_insert_with(|| json!([]))),
            false => drop(task.remove("artifacts")),
        }
    }
    Ok(task)
}
