//! Rounds of a call: results that request input from the client, and the repeated requests with it.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Result};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, CreateTaskResult, InputRequest,
    InputRequiredResult, ServerResult,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{calls::Call, connection::Connection, content, inputs, tasks};

/// Maximum of rounds of one call.
const ROUNDS: u32 = 100;

/// Delay before a request that a server wants repeated without any input.
const AGAIN: Duration = Duration::from_millis(500);

/// Outcome of one request of a call.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Round {
    /// The call is done. Not persisted: the result of the tool is.
    #[serde(skip)]
    Done(Box<CallToolResult>),
    Input(InputRequiredResult),
    Task(CreateTaskResult),
}

/// Makes the call, however many requests it takes.
///
/// A round whose input suspends the run, and the handle of a task, are persisted: a resumed run
/// continues with the last round instead of calling the tool from its beginning.
pub(super) async fn call(
    connection: &Connection,
    call: &Arc<Call>,
    mut params: CallToolRequestParams,
) -> Result<CallToolResult> {
    for number in 0..ROUNDS {
        let name = format!("mcp-round-{number}");
        let is_resumed = connection.is_stateless && (call.req.resumed || call.req.cx.is_resumed());
        let round = if is_resumed { known(connection, call, &params, &name).await? } else { None };
        let round = match round {
            Some(round) => round,
            None => sent(connection, call, &params).await?,
        };
        match &round {
            Round::Input(asked) if !is_resumed && suspends(connection, asked) => persist(call, &name, &round).await?,
            Round::Task(_) if !is_resumed => persist(call, &name, &round).await?,
            _ => {}
        }
        match round {
            Round::Done(result) => return Ok(*result),
            Round::Task(task) => return tasks::follow(connection, call, task).await,
            Round::Input(asked) => {
                content::check_size(&asked, connection.settings.limit)?;
                let requests = asked.input_requests.unwrap_or_default();
                if requests.is_empty() {
                    tokio::time::sleep(AGAIN).await;
                }
                let responses = inputs::answer(&connection.settings, call, requests).await?;
                params.input_responses = Some(responses).filter(|responses| !responses.is_empty());
                params.request_state = asked.request_state;
            }
        }
    }
    let server = &connection.settings.name;
    Err(Error::tool(format!("The server '{server}' requested input {ROUNDS} times, and gave no result.")))
}

/// Returns true if the requested input suspends the run until a person answers.
fn suspends(connection: &Connection, asked: &InputRequiredResult) -> bool {
    let asks = |request: &InputRequest| matches!(request, InputRequest::Elicitation(_));
    let settings = &connection.settings;
    settings.asks && settings.answers.is_none() && asked.input_requests.iter().flatten().any(|(_, asked)| asks(asked))
}

/// Persists a round in the run's journal.
async fn persist(call: &Call, name: &str, round: &Round) -> Result<()> {
    let value = serde_json::to_value(round).map_err(unreadable)?;
    call.req.decide(name, async { Ok(value) }).await.map(drop)
}

/// Returns the round of an earlier attempt; otherwise sends the request, and persists its outcome.
/// `None` if an earlier attempt ended with this round.
async fn known(
    connection: &Connection,
    call: &Arc<Call>,
    params: &CallToolRequestParams,
    name: &str,
) -> Result<Option<Round>> {
    let mut done = None;
    let stored = call.req.decide(name, async {
        match sent(connection, call, params).await? {
            Round::Done(result) => {
                done = Some(Round::Done(result));
                Ok(Value::Null)
            }
            other => serde_json::to_value(other).map_err(unreadable),
        }
    });
    let stored = stored.await?;
    match (done, stored) {
        (Some(done), _) => Ok(Some(done)),
        (None, Value::Null) => Ok(None),
        (None, stored) => serde_json::from_value(stored).map(Some).map_err(unreadable),
    }
}

/// Sends the request once.
async fn sent(connection: &Connection, call: &Arc<Call>, params: &CallToolRequestParams) -> Result<Round> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
    match connection.send(call, request).await? {
        ServerResult::CallToolResult(result) => Ok(Round::Done(Box::new(result))),
        ServerResult::InputRequiredResult(asked) => Ok(Round::Input(asked)),
        ServerResult::CreateTaskResult(task) => Ok(Round::Task(task)),
        _ => {
            let server = &connection.settings.name;
            Err(Error::tool(format!("The server '{server}' gave something that is no result.")))
        }
    }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::tool("a request of the server for input cannot be persisted").with_source(error)
}
