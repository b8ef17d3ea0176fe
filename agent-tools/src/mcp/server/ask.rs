//! Elicitation of a run's questions from the client's user.

use agent_core::{Answer, Error, ErrorKind, Result, run::Question};
use rmcp::{
    RoleServer,
    model::{ElicitRequestParams, ElicitationAction, ElicitationSchema},
    service::RequestContext,
};
use serde_json::{Value, json};

/// Returns the answers of the client's user, by question id.
pub(super) async fn all(questions: &[Question], context: &RequestContext<RoleServer>) -> Result<Vec<(String, Answer)>> {
    let mut answers = Vec::new();
    for question in questions {
        answers.push(question.answer(one(question, context).await?));
    }
    Ok(answers)
}

async fn one(question: &Question, context: &RequestContext<RoleServer>) -> Result<Value> {
    let about = match question.payload.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => format!("{}: {}", question.kind, question.payload),
    };
    let can_ask = context.client_capabilities().is_some_and(|can| can.elicitation.is_some());
    if !can_ask {
        return Err(Error::tool(format!("This needs the answer of a person, and your client cannot ask one. {about}")));
    }
    let (schema, form) = form(question.schema.as_deref());
    let request = ElicitRequestParams::FormElicitationParams { meta: None, message: about, requested_schema: schema };
    let given = context.peer.create_elicitation(request).await;
    let given = given.map_err(|e| Error::tool("The client could not ask its user.").with_source(e))?;
    match (given.action, given.content) {
        (ElicitationAction::Accept, Some(content)) => Ok(form.value(content)),
        _ => Err(Error::new(ErrorKind::Tool, "The user did not answer, so nothing was done.")),
    }
}

/// Form of an answer in the elicited content.
#[derive(Clone, Copy)]
enum Form {
    /// The content is the answer.
    Whole,
    /// A field holds the answer.
    Field,
    /// A field holds the answer as JSON text, since clients only support text, numbers and choices.
    Json,
}

impl Form {
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
