//! Files that a provider keeps: [`Files`].

mod api;
mod multipart;

use std::{fmt, sync::Arc};

use agent_core::{Error, Media, Result};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{BatchApi, FileApi, ModelBuilder, Wire, model, provider::desk::Desk};

/// Files that a provider keeps, and that messages name by their ids: what is sent often is sent once.
///
/// OpenAI, Anthropic, Gemini and Mistral keep files (Gemini for two days). A file is in a message as
/// [`StoredFile::media`], which only the provider understands that has it.
///
/// ```no_run
/// use agent_core::{Message, Part, UserMessage};
/// use agent_llm::files;
///
/// # async fn example(pages: Vec<u8>) -> agent_core::Result<()> {
/// let files = files("anthropic")?;
/// let report = files.upload("report.pdf", "application/pdf", pages).await?;
/// let question = Message::User(UserMessage::new(vec![Part::Document(report.media()), Part::text("What does it say?")]));
/// files.delete(&report.id).await?;
/// # drop(question);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Files {
    desk: Arc<Desk>,
    api: FileApi,
}

/// A file that a provider keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoredFile {
    /// Its id, by which it is fetched and deleted.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its media type, if the provider says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Its length in bytes.
    pub bytes: u64,
    /// What messages name it by, if that is not its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
}

impl StoredFile {
    /// The file in a message.
    pub fn media(&self) -> Media {
        let media = Media::file(self.uri.as_ref().unwrap_or(&self.id));
        match &self.mime {
            Some(mime) => media.with_mime(mime),
            None => media,
        }
    }
}

/// The files that a provider keeps for the key that the environment has.
///
/// For another key, address or transport, begin with a model: [`ModelBuilder::files`].
///
/// # Errors
/// [`Config`](agent_core::ErrorKind::Config) if the provider is not known or keeps none, or something is missing.
pub fn files(provider: &str) -> Result<Files> {
    model(format!("{provider}:files")).files()
}

impl ModelBuilder {
    /// The files that the model's provider keeps, reached as the model is.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) as [`build`](Self::build), and if the provider keeps none for this wire.
    pub fn files(self) -> Result<Files> {
        Files::new(Arc::new(self.desk()?))
    }
}

impl Files {
    fn new(desk: Arc<Desk>) -> Result<Self> {
        let lacks = || {
            Error::config(format!(
                "nobody has said how {} keeps files: openai, anthropic, gemini and mistral do",
                desk.provider.name
            ))
        };
        let api = desk.provider.files.ok_or_else(lacks)?;
        let fits = match api {
            FileApi::OpenAi => matches!(desk.wire, Wire::Chat | Wire::Responses),
            FileApi::Anthropic => desk.wire == Wire::Messages,
            FileApi::Gemini => desk.wire == Wire::Generate,
        };
        if !fits {
            let (name, wire) = (&desk.provider.name, desk.wire);
            return Err(Error::config(format!("nobody has said how {name} keeps files for the wire {wire}")));
        }
        Ok(Self { desk, api })
    }

    /// Stores a file.
    ///
    /// # Errors
    /// The provider's; [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for a media type that no header takes. It is not
    /// tried again: it may be stored already.
    pub async fn upload(&self, name: &str, mime: &str, bytes: impl Into<Bytes>) -> Result<StoredFile> {
        // Mistral, which is known by its batches, has other words for what a file is for.
        let purpose = if self.desk.provider.batch == Some(BatchApi::Mistral) { "ocr" } else { "user_data" };
        self.api.at(&self.desk).store(name, mime, bytes.into(), purpose).await
    }

    /// What the provider says of a file.
    ///
    /// # Errors
    /// The provider's: there may be no such file.
    pub async fn get(&self, id: &str) -> Result<StoredFile> {
        self.api.at(&self.desk).find(id).await
    }

    /// All files, the newest first or last, as the provider has it.
    ///
    /// # Errors
    /// The provider's.
    pub async fn list(&self) -> Result<Vec<StoredFile>> {
        self.api.at(&self.desk).all().await
    }

    /// What is in a file. Providers give back what was made there, and mostly not what was uploaded.
    ///
    /// # Errors
    /// The provider's.
    pub async fn download(&self, id: &str) -> Result<Bytes> {
        self.api.at(&self.desk).content(id).await
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// The provider's.
    pub async fn delete(&self, id: &str) -> Result<()> {
        self.api.at(&self.desk).remove(id).await
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("provider", &self.desk.provider.name).finish_non_exhaustive()
    }
}
