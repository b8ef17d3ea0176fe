//! Model of a client (sampling), as a [`Model`].
#![expect(deprecated, reason = "sampling is on its way out of the protocol, and clients have it")]

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, Message, Model, ModelInfo, ModelRequest, ModelResponse, Part, Result,
    SystemMessage, async_trait, message::MediaSource, model::FinishReason,
};
use rmcp::{
    RoleServer,
    model::{
        AudioContent, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult, ImageContent,
        InputRequest, Role, SamplingMessage, SamplingMessageContentBlock,
    },
    service::Peer,
};
use serde::Deserialize;

use super::inputs::Inputs;

/// Maximum of output tokens, if the request sets none.
const TOKENS: u64 = 4096;

/// Model of a client.
pub(super) struct ClientModel {
    pub(super) peer: Peer<RoleServer>,
    /// Requests the answer by a result, for revisions without requests of a server.
    pub(super) inputs: Option<Inputs>,
}

#[async_trait]
impl Model for ClientModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("client").with_provider("mcp").without_tools()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let failed = "The client's model could not be asked.";
        let answer = match &self.inputs {
            None => self.peer.create_message(params(&req)?).await.map_err(|e| Error::tool(failed).with_source(e))?,
            Some(inputs) => {
                let request = InputRequest::CreateMessage(CreateMessageRequest::new(params(&req)?));
                CreateMessageResult::deserialize(inputs.request("model", request).await)
                    .map_err(|e| Error::tool(failed).with_source(e))?
            }
        };
        response(answer, &req)
    }
}

fn params(req: &ModelRequest) -> Result<CreateMessageRequestParams> {
    if !req.tools.is_empty() {
        return Err(Error::new(ErrorKind::InvalidRequest, "the client's model takes no tools"));
    }
    let most = req.params.max_tokens.unwrap_or(TOKENS);
    let messages = req.messages.iter().map(message).collect::<Result<_>>()?;
    let mut params = CreateMessageRequestParams::new(messages, u32::try_from(most).unwrap_or(u32::MAX));
    params.system_prompt = req.system.as_ref().map(SystemMessage::text);
    #[expect(clippy::cast_possible_truncation, reason = "a temperature has few digits")]
    let temperature = req.params.temperature.map(|temperature| temperature as f32);
    params.temperature = temperature;
    params.stop_sequences = Some(req.params.stop.clone()).filter(|stop| !stop.is_empty());
    Ok(params)
}

fn message(message: &Message) -> Result<SamplingMessage> {
    let wrong =
        |what: &str| Error::new(ErrorKind::InvalidRequest, format!("the client's model cannot be shown {what}"));
    let part = |part: &Part| match part {
        Part::Text(text) => Ok(SamplingMessageContentBlock::text(&text.text)),
        Part::Image(media) | Part::Document(media) => {
            let MediaSource::Base64(data) = &media.source else { return Err(wrong("what is only linked to")) };
            let mime = media.mime.clone().unwrap_or_default();
            if media.is_audio() {
                return Ok(SamplingMessageContentBlock::Audio(AudioContent::new(data.clone(), mime)));
            }
            if matches!(part, Part::Document(_)) {
                return Err(wrong("documents"));
            }
            Ok(SamplingMessageContentBlock::Image(ImageContent::new(data.clone(), mime)))
        }
        _ => Err(wrong("what only its provider can read")),
    };
    match message {
        Message::User(user) => {
            let content = user.parts().iter().map(part).collect::<Result<_>>()?;
            Ok(SamplingMessage::new_multiple(Role::User, content))
        }
        Message::Assistant(assistant) if !assistant.has_calls() => {
            Ok(SamplingMessage::assistant_text(assistant.text()))
        }
        _ => Err(wrong("calls of tools, their results and instructions in between")),
    }
}

fn response(answer: CreateMessageResult, req: &ModelRequest) -> Result<ModelResponse> {
    let texts = answer.message.content.into_vec().into_iter().filter_map(|block| match block {
        SamplingMessageContentBlock::Text(text) => Some(Block::text(text.text)),
        _ => None,
    });
    let message = AssistantMessage::new(texts.collect());
    if message.is_empty() {
        return Err(Error::tool("The client's model gave no text."));
    }
    let finish = match answer.stop_reason.as_deref() {
        Some("maxTokens") => FinishReason::Length,
        Some("endTurn" | "stopSequence") | None => FinishReason::Stop,
        Some(other) => FinishReason::Other(cut(other)),
    };
    let mut response = ModelResponse::new(req.sink.collect(message)?).with_finish(finish);
    response.model = Some(cut(&answer.model).into());
    Ok(response)
}

/// Truncates a name that a client gave.
fn cut(name: &str) -> String {
    crate::text::cut(name, 200).to_owned()
}
