//! Elicitation of a run's questions from the client's user.

use agent_core::{Answer, Error, ErrorKind, Result, run::Question};
use rmcp::{
    RoleServer,
    model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema},
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::check_value;

/// Context of an error that names the capability that the client lacks.
pub(super) const MISSING: &str = "missing_capability";

/// Returns the answers of the client's user, by question id.
pub(super) async fn all(questions: &[Question], context: &RequestContext<RoleServer>) -> Result<Vec<(String, Answer)>> {
    let mut answers = Vec::new();
    for question in questions {
        answers.push(question.answer(one(question, context).await?));
    }
    Ok(answers)
}

async fn one(question: &Question, context: &RequestContext<RoleServer>) -> Result<Value> {
    let (request, form) = request(question, context)?;
    let given = context.peer.create_elicitation(request).await;
    let given = given.map_err(|e| Error::tool("The client could not ask its user.").with_source(e))?;
    form.answer(given)
}

/// Returns the elicitation of a question, and the form of its answer.
///
/// # Errors
/// If the client cannot ask its user.
pub(super) fn request(
    question: &Question,
    context: &RequestContext<RoleServer>,
) -> Result<(ElicitRequestParams, Form)> {
    let about = match question.payload.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => format!("{}: {}", question.kind, question.payload),
    };
    let can_ask = context.client_capabilities().is_some_and(|can| can.elicitation.is_some());
    if !can_ask {
        let message = format!("This needs the answer of a person, and your client cannot ask one. {about}");
        return Err(Error::tool(message).with_context(MISSING, "elicitation"));
    }
    let (schema, form) = form(question.schema.as_deref());
    Ok((ElicitRequestParams::FormElicitationParams { meta: None, message: about, requested_schema: schema }, form))
}

/// Form of an answer in the elicited content.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// The content is the answer.
    Whole,
    /// A field holds the answer.
    Field,
    /// A field holds the answer as JSON text, since clients only support text, numbers and choices.
    Json,
}

impl Form {
    /// Returns the answer of the client's user.
    ///
    /// # Errors
    /// If the user declined.
    pub(super) fn answer(self, given: ElicitResult) -> Result<Value> {
        match (given.action, given.content) {
            (ElicitationAction::Accept, Some(content)) => Ok(self.value(content)),
            _ => Err(Error::new(ErrorKind::Tool, "The user did not answer, so nothing was done.")),
        }
    }

    /// Returns true if this is a response to the elicitation of the question: a refusal, or an
    /// answer that matches its schema.
    pub(super) fn accepts(self, question: &Question, response: &Value) -> bool {
        let Ok(given) = ElicitResult::deserialize(response) else { return false };
        if given.action != ElicitationAction::Accept {
            return true;
        }
        let Ok(answer) = self.answer(given) else { return false };
        question.schema.as_deref().is_none_or(|schema| check_value(schema).is_ok_and(|check| check(&answer).is_ok()))
    }

    fn value(self, mut content: Value) -> Value {
        let field = match self {
            Self::Whole => return content,
            Self::Field | Self::Json => content["answer"].take(),
        };
        match (self, field.as_str().and_then(|text| serde_json::from_str(text).ok())) {
            (Self::Json, Some(value)) => value,
            _ => field,
        }
    }
}

fn form(schema: Option<&Value>) -> (ElicitationSchema, Form) {
    let field = |schema: &Value| json!({"type": "object", "properties": {"answer": schema}, "required": ["answer"]});
    let parse = |schema: Value| serde_json::from_value::<ElicitationSchema>(schema).ok();
    let asked = schema.and_then(|schema| {
        parse(schema.clone())
            .map(|whole| (whole, Form::Whole))
            .or_else(|| parse(field(schema)).map(|in_field| (in_field, Form::Field)))
    });
    asked.unwrap_or_else(|| {
        let any = json!({"type": "string", "description": schema.map_or("A text, or JSON.".into(), Value::to_string)});
        (parse(field(&any)).expect("a text is a field"), Form::Json)
    })
}
