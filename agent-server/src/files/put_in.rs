//! Middleware that replaces file references by content.

use agent::{
    Middleware, ModelRequest, ModelResponse, Part, Result, SessionId, async_trait,
    core::middleware::ModelNext,
    message::{MediaSource, Message},
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{Files, file_of, is_id, kind, names_any};

/// Middleware that inserts the content of files into model requests. It must be the innermost one:
/// outer middlewares and the journal only see ids.
///
/// Only files of the session's tenant are used. A text file is inserted as text, since few models
/// accept it as a document.
#[derive(Clone, Debug)]
pub(crate) struct PutIn(pub(crate) Files);

#[async_trait]
impl Middleware for PutIn {
    fn name(&self) -> &str {
        "uploaded files"
    }

    async fn wrap_model_call(&self, mut req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        let named: Vec<_> = req.messages.iter().enumerate().filter(|(_, message)| names_any(message)).collect();
        let named: Vec<_> = named.into_iter().map(|(at, message)| (at, message.clone())).collect();
        let session = req.cx.ids().session.clone();
        let tenant = SessionId::parse(&session).map_or_else(String::new, |id| id.user().to_owned());
        for (at, message) in named {
            let Message::User(mut user) = message else { continue };
            for part in user.parts_mut() {
                if let Some(id) = file_of(part) {
                    *part = self.whole(&tenant, id, part).await?;
                }
            }
            req.messages.replace(at, Message::User(user))?;
        }
        next.run(req).await
    }
}

impl PutIn {
    async fn whole(&self, tenant: &str, id: &str, part: &Part) -> Result<Part> {
        let (Part::Image(media) | Part::Document(media)) = part else { return Ok(part.clone()) };
        let bytes = if is_id(id) { self.0.store.read(tenant, id).await? } else { None };
        let name = media.name.as_deref().unwrap_or("file");
        let Some(bytes) = bytes else {
            return Ok(Part::text(format!("[The file \"{name}\" was sent here, but is no longer available.]")));
        };
        let mime = media.mime.as_deref().unwrap_or_default();
        if let Some(text) = std::str::from_utf8(&bytes).ok().filter(|_| kind::is_text(mime)) {
            return Ok(Part::text(format!("<file name=\"{name}\">\n{text}\n</file>")));
        }
        let mut media = media.clone();
        media.source = MediaSource::Base64(STANDARD.encode(&bytes));
        Ok(if matches!(part, Part::Image(_)) { Part::Image(media) } else { Part::Document(media) })
    }
}
