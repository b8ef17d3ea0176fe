//! Routes `/api/questions` and `/api/runs/{run}/answers`: open questions and their answers.

use agent::{Question, core::exact, journal::EntryBody, run::Answer};
use axum::{
    Json, Router,
    extract::{Path, State},
    response::IntoResponse,
    routing::{get, post},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::runs::In;
use crate::{
    app::{App, FoundRun, RunView},
    caller::{Caller, Scope},
    decision::decision,
    error::ApiError,
    extract::{JsonBody, Query},
};

pub(super) fn router() -> Router<App> {
    Router::new().route("/questions", get(list)).route("/runs/{run}/answers", post(answer))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Which {
    session: Option<String>,
    agent: Option<String>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<impl IntoResponse, ApiError> {
    let mut waiting = app.waiting(&caller, which.session.as_deref()).await?;
    waiting.retain(|one| which.agent.as_deref().is_none_or(|agent| one.agent == agent));
    Ok(Json(json!({"questions": waiting})))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answers {
    answers: Vec<Given>,
}

/// Answer to one question: exactly one of `allow`, `arguments` and `value`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    question: String,
    #[serde(default)]
    digest: String,
    allow: Option<bool>,
    reason: Option<String>,
    #[serde(default, deserialize_with = "exact::deserialize")]
    arguments: Value,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
}

/// Maximum number of answers per request: each one that is no longer open requires a search of the
/// journal.
const MOST: usize = 100;

/// Deserializes a value that is present, even if it is null, with every digit of its numbers.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    exact::deserialize(from).map(Some)
}

impl Given {
    /// Id of the question.
    pub(crate) fn question(&self) -> &str {
        &self.question
    }

    /// Returns the answer to a question.
    ///
    /// # Errors
    /// 400 unless exactly one form of an answer is given.
    pub(crate) fn value(&self, question: &Question) -> Result<Value, ApiError> {
        if self.reason.is_some() && self.allow != Some(false) {
            return Err(ApiError::invalid("'reason' requires \"allow\": false"));
        }
        let arguments = Some(&self.arguments).filter(|arguments| !arguments.is_null());
        match (self.allow, arguments, &self.value) {
            (Some(allow), None, None) => Ok(decision(question, allow, self.reason.as_deref())),
            (None, Some(arguments), None) => Ok(json!({"decision": "edit", "arguments": arguments})),
            (None, None, Some(value)) => Ok(value.clone()),
            _ => Err(ApiError::invalid("an answer must have exactly one of 'allow', 'arguments' and 'value'")),
        }
    }
}

async fn answer(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    Query(of): Query<In>,
    JsonBody(given): JsonBody<Answers>,
) -> Result<(StatusCode, Json<RunView>), ApiError> {
    caller.require(Scope::Answer)?;
    if given.answers.is_empty() {
        return Err(ApiError::invalid("'answers' is empty"));
    }
    if given.answers.len() > MOST {
        return Err(ApiError::invalid(format!("'answers' has more than {MOST}: send them in several requests")));
    }
    let run = app.run(&caller, &run, of.session.as_deref()).await?;
    let open = match run.is_live() {
        true => Vec::new(),
        false => run.checkpoint().await?.map(|open| open.questions).unwrap_or_default(),
    };
    let mut answers = Vec::new();
    for one in &given.answers {
        match open.iter().find(|question| question.id == one.question) {
            Some(question) => {
                let mut answer = Answer::from(one.value(question)?).by(caller.subject());
                answer.digest = if one.digest.is_empty() { question.digest.clone() } else { one.digest.clone() };
                answers.push((question.id.clone(), answer));
            }
            None if was_given(&app, &run, one).await? => {}
            None => {
                let ids: Vec<_> = open.iter().map(|question| question.id.as_str()).collect();
                let message =
                    format!("the run has no open question '{}'; open questions: {}", one.question, ids.join(", "));
                return Err(ApiError::conflict("answer_refused", message).details(json!({"questions": open})));
            }
        }
    }
    if answers.is_empty() {
        return Ok((StatusCode::OK, Json(run.view().await?)));
    }
    let run = app.go_on(&caller, &run, answers, |request| request).await?;
    Ok((StatusCode::ACCEPTED, Json(run.view().await?)))
}

/// True if the run took this same answer before: a client may repeat a request whose response it
/// missed.
async fn was_given(app: &App, run: &FoundRun, given: &Given) -> Result<bool, ApiError> {
    let Some(record) = run.record().await? else { return Ok(false) };
    let mut asked: Option<Question> = None;
    let (mut taken, mut after) = (false, record.seq.saturating_sub(1));
    loop {
        let page = app.journal().read(run.store_name(), after, 500).await?;
        let Some(last) = page.last() else { return Ok(taken) };
        after = last.seq;
        for entry in page.iter().filter(|entry| *entry.run == *run.id()) {
            match &entry.body {
                EntryBody::Asked { question } if question.id == given.question => asked = Some((**question).clone()),
                EntryBody::Answered { id, answer, .. } if **id == *given.question => {
                    taken =
                        asked.as_ref().is_some_and(|question| given.value(question).is_ok_and(|said| said == *answer));
                }
                _ => {}
            }
        }
    }
}
