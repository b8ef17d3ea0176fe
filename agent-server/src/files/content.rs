//! Layer that replaces file references by content.

use std::task::{Context, Poll};

use agent::{
    ModelRequest, ModelResponse, Part, Result, SessionId,
    core::{BoxFuture, boxed},
    message::{MediaSource, Message},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use tower::{Layer, Service};

use super::{Files, file_of, is_id, kind, names_any};

/// Layer that inserts the content of files into model requests. It must be the innermost one:
/// middlewares and the journal only see ids.
///
/// Only files of the session's tenant are used. A text file is inserted as text, since few models
/// accept it as a document. A layer is not part of an agent's fingerprint: runs resume whether
/// uploads are enabled or not.
#[derive(Clone, Debug)]
pub(super) struct FileContent(pub(super) Files);

impl<S> Layer<S> for FileContent {
    type Service = WithFiles<S>;

    fn layer(&self, inner: S) -> WithFiles<S> {
        WithFiles { files: self.0.clone(), inner }
    }
}

/// Model service with the content of files.
#[derive(Clone, Debug)]
pub(super) struct WithFiles<S> {
    files: Files,
    inner: S,
}

impl<S> Service<ModelRequest> for WithFiles<S>
where
    S: Service<ModelRequest, Response = ModelResponse, Error = agent::Error> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = ModelResponse;
    type Error = agent::Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut req: ModelRequest) -> Self::Future {
        let (clone, files) = (self.inner.clone(), self.files.clone());
        let mut inner = std::mem::replace(&mut self.inner, clone); // the one that is ready
        boxed(|| async move {
            files.insert(&mut req).await?;
            inner.call(req).await
        })
    }
}

impl Files {
    /// Replaces the references in a request by the files' content.
    async fn insert(&self, req: &mut ModelRequest) -> Result<()> {
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
        Ok(())
    }

    async fn whole(&self, tenant: &str, id: &str, part: &Part) -> Result<Part> {
        let (Part::Image(media) | Part::Document(media)) = part else { return Ok(part.clone()) };
        let bytes = if is_id(id) { self.store.read(tenant, id).await? } else { None };
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
