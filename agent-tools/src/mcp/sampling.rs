//! Sampling: models that a server asks through its client.
#![expect(deprecated, reason = "sampling is on its way out of the protocol, and servers have it")]

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, FinishReason, History, Message, Model, ModelParams, ModelRequest, Part,
    Result, SystemMessage, UserMessage,
};
use rmcp::model::{
    ContentBlock, CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage, SamplingMessageContentBlock,
};

use super::{calls::Call, content};

/// Calls the model as a part of the call's run. The answer is journalled, so that a repeated call
/// gets the same answer.
pub(super) async fn ask(
    call: &Call,
    model: &dyn Model,
    most: Option<u64>,
    mut params: CreateMessageRequestParams,
) -> Result<CreateMessageResult> {
    // The metadata identifies the request and is not part of the question.
    params.meta = None;
    let name = format!("sampling-{}", call.name_of(&params)?);
    if params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err(Error::new(ErrorKind::InvalidRequest, "a server cannot give the model tools here"));
    }
    let cx = &call.req.cx;
    let mut request = ModelRequest::new(cx.clone());
    request.messages = History::from_messages(params.messages.into_iter().map(message).collect::<Result<Vec<_>>>()?)?;
    request.system = params.system_prompt.map(|text| SystemMessage::new(vec![Part::text(text)]));
    let mut how = ModelParams::default();
    let tokens = u64::from(params.max_tokens);
    how.max_tokens = Some(most.map_or(tokens, |most| most.min(tokens)));
    how.temperature = params.temperature.map(f64::from);
    how.stop = params.stop_sequences.unwrap_or_default();
    request.params = Arc::new(how);
    let info = Arc::new(model.info());
    request.model = Some(info.clone());
    let said = call.req.decide(&name, async {
        let response = cx.call_model(model, request).await?;
        let reason = match response.finish {
            FinishReason::Length => "maxTokens",
            _ => "endTurn",
        };
        Ok(serde_json::json!([response.message.text(), reason]))
    });
    let (text, reason): (String, String) = serde_json::from_value(said.await?)
        .map_err(|e| Error::new(ErrorKind::Store, "what a model said to a server cannot be read").with_source(e))?;
    let mut result = CreateMessageResult::new(SamplingMessage::assistant_text(text), info.name.clone());
    result.stop_reason = Some(reason);
    Ok(result)
}

fn message(message: SamplingMessage) -> Result<Message> {
    let part = |block| match block {
        SamplingMessageContentBlock::Text(text) => Ok(Part::text(text.text)),
        SamplingMessageContentBlock::Image(image) => Ok(content::part(ContentBlock::Image(image))),
        SamplingMessageContentBlock::Audio(audio) => Ok(content::part(ContentBlock::Audio(audio))),
        _ => Err(Error::new(ErrorKind::InvalidRequest, "a server cannot show the model calls of tools here")),
    };
    let parts = message.content.into_vec().into_iter().map(part).collect::<Result<Vec<_>>>()?;
    if message.role == Role::User {
        return Ok(Message::User(UserMessage::new(parts)));
    }
    let texts = parts.into_iter().map(|part| match part {
        Part::Text(text) => Ok(Block::Text(text)),
        _ => Err(Error::new(ErrorKind::InvalidRequest, "only text can be said to come from the model")),
    });
    Ok(Message::Assistant(AssistantMessage::new(texts.collect::<Result<_>>()?)))
}
