//! Inputs that a server requests by a result: elicitation, sampling, roots.
#![expect(deprecated, reason = "roots and sampling are on their way out of the protocol, and servers have them")]

use agent_core::{Error, ErrorKind, Result};
use rmcp::model::{
    CreateMessageRequestParams, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, ListRootsResult, Root,
};
use serde::Serialize;
use serde_json::Value;

use super::{calls::Call, content, question, sampling, settings::Settings};

/// Maximum size of an elicitation request, in bytes.
pub(super) const QUESTION: usize = 64 * 1024;

/// Answers all requests.
///
/// # Errors
/// Of kind [`Interrupted`](ErrorKind::Interrupted) while people have not answered: all questions
/// are put to them at once.
pub(super) async fn answer(settings: &Settings, call: &Call, requests: InputRequests) -> Result<InputResponses> {
    let (mut responses, mut waits) = (InputResponses::new(), None);
    for (key, request) in requests {
        match one(settings, call, request).await {
            Ok(response) => drop(responses.insert(key, response)),
            Err(error) if error.kind() == ErrorKind::Interrupted => drop(waits.get_or_insert(error)),
            // The server has no other way to learn of it than that the call ends.
            Err(error) if error.kind() == ErrorKind::InvalidRequest => {
                return Err(Error::tool(format!("The server requested input, which failed: {}", error.message())));
            }
            Err(error) => return Err(error),
        }
    }
    waits.map_or(Ok(responses), Err)
}

async fn one(settings: &Settings, call: &Call, request: InputRequest) -> Result<Value> {
    match request {
        InputRequest::Elicitation(request) => value(elicit(settings, call, &request.params).await?),
        InputRequest::CreateMessage(request) => value(sample(settings, call, request.params).await?),
        InputRequest::ListRoots(_) => value(roots(settings)),
        _ => Err(Error::tool(format!("The server '{}' requested input of an unknown kind.", settings.name))),
    }
}

fn value(response: impl Serialize) -> Result<Value> {
    serde_json::to_value(response).map_err(|e| Error::tool("an input for the server cannot be encoded").with_source(e))
}

/// Maximum of rounds of a request that belongs to no call.
pub(super) const ROUNDS: u32 = 10;

/// Answers the requests of a prompt or a resource, which belongs to no run: people are asked at
/// once or not at all, and there is no model.
pub(super) async fn answer_outside(
    settings: &Settings,
    asked: InputRequiredResult,
) -> Result<(Option<InputResponses>, Option<String>)> {
    content::check_size(&asked, settings.limit)?;
    let mut responses = InputResponses::new();
    for (key, request) in asked.input_requests.unwrap_or_default() {
        let response = match request {
            InputRequest::ListRoots(_) => value(roots(settings))?,
            InputRequest::Elicitation(request) => {
                let question = question::read(&settings.name, &request.params);
                value(match (question, &settings.answers) {
                    (Some(question), Some(answerer)) => question.answer_now(&**answerer).await?,
                    _ => ElicitResult::new(ElicitationAction::Decline),
                })?
            }
            _ => {
                let message = format!("The server '{}' requests input that only a call of a tool has.", settings.name);
                return Err(Error::tool(message));
            }
        };
        responses.insert(key, response);
    }
    Ok((Some(responses).filter(|responses| !responses.is_empty()), asked.request_state))
}

/// The error of a server that requests input without end.
pub(super) fn endless(settings: &Settings) -> Error {
    Error::tool(format!("The server '{}' requested input {ROUNDS} times, and gave no result.", settings.name))
}

/// Asks a person.
async fn elicit(settings: &Settings, call: &Call, request: &ElicitRequestParams) -> Result<ElicitResult> {
    let asked = question::read(&settings.name, request).filter(|_| settings.may_ask_people());
    let Some(asked) = asked else { return Ok(ElicitResult::new(ElicitationAction::Decline)) };
    content::check_size(request, QUESTION)?;
    match &settings.answers {
        Some(answerer) => asked.answer(call, &**answerer).await,
        None => asked.ask(call),
    }
}

/// Calls the model for servers.
async fn sample(
    settings: &Settings,
    call: &Call,
    params: CreateMessageRequestParams,
) -> Result<rmcp::model::CreateMessageResult> {
    let Some(model) = &settings.model else {
        return Err(Error::tool(format!("The server '{}' requires a model, and is given none.", settings.name)));
    };
    content::check_size(&params, settings.limit)?;
    sampling::ask(call, &**model, settings.sampled_tokens, params).await
}

/// Lists the roots.
pub(super) fn roots(settings: &Settings) -> ListRootsResult {
    ListRootsResult::new(settings.roots.iter().map(Root::new).collect())
}
