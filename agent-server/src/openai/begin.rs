//! Conversion of a request into a run.

use agent::{RunRequest, dispatch::Signal};
use http::HeaderMap;

use super::{again, error::OpenAiError, items::read_id, wire::Asked};
use crate::{
    ApiError, App, Caller, FoundRun, Scope, Start,
    client_tools::{self, CallResult},
    conversation::{Began, check_media},
    extract::idempotency_key,
    follow::{self, WhenGone},
};

/// Header with the name of a session: then only new messages of the request are used.
pub(crate) const SESSION: &str = "agent-session";

/// Resumes the run whose calls the request answers, or continues the session that it names, or
/// starts a run with the messages as its history. With an idempotency key the client can reconnect
/// to the run, so the run then survives a disconnect.
pub(super) async fn begin(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    asked: &Asked,
) -> Result<(Began, WhenGone), OpenAiError> {
    caller.require(Scope::Run)?;
    let own = app.agent(caller, &asked.agent)?.agent().tools().to_vec();
    let tools = client_tools::tools(asked.tools.iter().cloned(), &own)?;
    let params = asked.params.clone();
    let shape = move |request: RunRequest| tools.bring(request).params(params);
    check_media(&asked.messages)?;
    check_media(&asked.newest)?;
    let key = idempotency_key(headers)?;
    let gone = if key.is_some() { WhenGone::GoOn } else { WhenGone::Cancel };
    if let Some((run, results)) = answered(app, caller, asked).await {
        if key.is_some()
            && let Some(after) = again::taken(app, &run, &results).await?
        {
            return Ok((Began { run, after: Some(after) }, gone));
        }
        let open = run.checkpoint().await?;
        let answers = open.map(|open| client_tools::answers(&open, &results)).unwrap_or_default();
        if !answers.is_empty() {
            let after = follow::at_rest(app, &run).await?;
            let run = app.go_on(caller, &run, answers, shape).await?;
            for message in &asked.newest {
                run.tell_run(Signal::Steer(message.clone())).await.map_err(OpenAiError::of_run)?;
            }
            return Ok((Began { run, after: Some(after) }, gone));
        }
    }
    let named = headers
        .get(SESSION)
        .map(|name| name.to_str().map_err(|_| ApiError::invalid("header 'agent-session' must be ASCII text")));
    let session = match (named.transpose()?, previous(asked)) {
        (Some(name), _) => Some(name.to_owned()),
        (None, Some(run)) => Some(after_previous(app, caller, &run).await?),
        (None, None) => None,
    };
    let messages = if session.is_some() { &asked.newest } else { &asked.messages };
    if messages.is_empty() {
        return Err(ApiError::invalid("the request contains no new message: send one").into());
    }
    let start = Start::new(&asked.agent, shape(RunRequest::new(messages.clone())));
    let start = session.into_iter().fold(start, Start::session);
    let start = match key {
        Some(key) => start.key(key).body(&serde_json::to_vec(&asked.body).unwrap_or_default()),
        None => start,
    };
    Ok((Began { run: app.start(caller, start).await?, after: None }, gone))
}

/// Returns the run whose calls the request answers, and the results by the calls' own ids. If the
/// run is not found, it belongs to another tenant or was deleted: the messages are then the whole
/// history.
async fn answered(app: &App, caller: &Caller, asked: &Asked) -> Option<(FoundRun, Vec<CallResult>)> {
    let (_, run) = asked.items.results.iter().filter_map(|result| read_id(&result.call)).next_back()?;
    let run = app.run(caller, run, None).await.ok()?;
    let own = |result: &CallResult| {
        let (call, of) = read_id(&result.call)?;
        (of == run.id()).then(|| CallResult { call: call.to_owned(), ..result.clone() })
    };
    let results = asked.items.results.iter().filter_map(own).collect();
    Some((run, results))
}

/// Returns the id of the run that `previous_response_id` refers to.
fn previous(asked: &Asked) -> Option<String> {
    let id = asked.body.get("previous_response_id")?.as_str()?;
    Some(id.strip_prefix("resp_").unwrap_or(id).to_owned())
}

/// Returns the session of that run, if it is the newest run there.
async fn after_previous(app: &App, caller: &Caller, run: &str) -> Result<String, ApiError> {
    let run = app.run(caller, run, None).await?;
    let session = app.sessions().session(&app.session_id(caller, &run.session()), run.agent());
    let newest = session.runs().await?.pop();
    if newest.is_none_or(|newest| *newest.run_id != *run.id()) {
        let message =
            "'previous_response_id' must be that of the session's newest response: later messages would be lost";
        return Err(ApiError::conflict("stale", message));
    }
    Ok(run.session().to_string())
}
