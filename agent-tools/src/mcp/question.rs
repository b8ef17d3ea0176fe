//! Elicitation: questions of a server to people.

use agent_core::{Ask, BoxFuture, Error, ErrorKind, Result};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::Call;
use crate::check_value;

/// Kind of an elicitation question.
pub const ELICITATION: &str = "mcp_elicitation";

#[derive(Deserialize)]
struct Given {
    action: ElicitationAction,
    content: Option<Value>,
}

/// Question of a server to a person: see
/// [`ClientBuilder::elicitation_by`](super::ClientBuilder::elicitation_by).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The client's name of the server that asks.
    pub server: String,
    /// The server's question.
    pub message: String,
    /// JSON Schema of the requested object.
    pub schema: Option<Value>,
    /// Address that the person must open instead.
    pub url: Option<String>,
}

/// Callback that answers on behalf of a person: the content, or `None` to decline.
pub(super) type Answerer = dyn Fn(Elicitation) -> BoxFuture<'static, Result<Option<Value>>> + Send + Sync;

/// Reads the question of the server `name`; `None` if its kind is unsupported.
pub(super) fn read(name: &str, request: &ElicitRequestParams) -> Option<Elicitation> {
    let (message, schema, url) = match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (message, Some(json!(requested_schema)), None)
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => (message, None, Some(url.clone())),
        _ => return None,
    };
    Some(Elicitation { server: name.to_owned(), message: message.clone(), schema, url })
}

impl Elicitation {
    fn payload(&self) -> Value {
        let (name, asked) = match &self.url {
            Some(url) => ("url", json!(url)),
            None => ("schema", json!(self.schema)),
        };
        json!({"server": self.server, "message": self.message, name: asked})
    }

    /// Returns the person's answer, or an error that suspends the run until there is one.
    pub(super) fn ask(&self, call: &Call) -> Result<ElicitResult> {
        let schema = json!({
            "type": "object",
            "properties": {
                "action": {"enum": ["accept", "decline", "cancel"]},
                "content": self.schema.clone().unwrap_or_else(|| json!({"type": "object"})),
            },
            "required": ["action"],
        });
        let payload = self.payload();
        let nonce = call.name_of(&payload)?;
        let given: Given = call.req.ask_with(Ask::new(ELICITATION, payload).nonce(nonce).schema(schema))?.parse()?;
        Ok(self.result(given.action, given.content))
    }

    /// Returns the callback's answer, which is journalled so that a repeated call gets the same
    /// answer.
    pub(super) async fn answer(self, call: &Call, answerer: &Answerer) -> Result<ElicitResult> {
        let name = format!("elicitation-{}", call.name_of(&self.payload())?);
        let given = call.req.decide(&name, async { Ok(json!(answerer(self.clone()).await?)) }).await?;
        self.checked(Some(given).filter(|given| !given.is_null()))
    }

    /// As [`answer`](Self::answer), outside of a call.
    pub(super) async fn answer_now(self, answerer: &Answerer) -> Result<ElicitResult> {
        let given = answerer(self.clone()).await?;
        self.checked(given)
    }

    /// Converts the callback's answer, if it matches the schema.
    fn checked(&self, given: Option<Value>) -> Result<ElicitResult> {
        let Some(given) = given else { return Ok(self.result(ElicitationAction::Decline, None)) };
        let result = self.result(ElicitationAction::Accept, Some(given));
        if let (Some(schema), Some(content)) = (&self.schema, &result.content) {
            let fits = check_value(schema)?(content);
            fits.map_err(|why| {
                Error::new(ErrorKind::InvalidRequest, format!("The user's answer does not fit: {why}"))
            })?;
        }
        Ok(result)
    }

    /// Converts the answer for the server. Fields missing from the content get the defaults of the
    /// schema.
    fn result(&self, action: ElicitationAction, content: Option<Value>) -> ElicitResult {
        let is_accepted = action == ElicitationAction::Accept;
        let mut result = ElicitResult::new(action);
        if is_accepted {
            let fields = self.schema.as_ref().and_then(|schema| schema["properties"].as_object());
            let mut content = content.unwrap_or_else(|| json!({}));
            for (field, about) in fields.into_iter().flatten() {
                if let (Some(default), None, true) = (about.get("default"), content.get(field), content.is_object()) {
                    content[field] = default.clone();
                }
            }
            result.content = Some(content);
        }
        result
    }
}
