//! Files stored at a provider: [`Files`].

mod api;
mod multipart;

use std::{fmt, sync::Arc};

use agent_core::{Error, Media, Result};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{BatchApi, FileApi, ModelBuilder, Wire, model, provider::desk::Desk};

/// File API client of a provider. Messages refer to stored files by id, so that content used
/// repeatedly is uploaded once.
///
/// OpenAI, Anthropic, Gemini and Mistral store files (Gemini for two days). Messages refer to a
/// file with [`StoredFile::media`], which only the provider that stores the file understands.
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

/// A file stored at a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoredFile {
    /// Id, used to fetch and delete the file.
    pub id: String,
    /// File name.
    pub name: String,
    /// Media type, if the provider reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// Reference used in messages, if it differs from the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
}

impl StoredFile {
    /// Returns the reference to the file for a message.
    pub fn media(&self) -> Media {
        let media = Media::file(self.uri.as_ref().unwrap_or(&self.id));
        match &self.mime {
            Some(mime) => media.with_mime(mime),
            None => media,
        }
    }
}

/// Returns the file client of a provider, with the key from the environment.
///
/// For another key, address or transport, begin with a model: [`ModelBuilder::files`].
///
/// # Errors
/// [`Config`](agent_core::ErrorKind::Config) if the provider is unknown or stores no files, or if a
/// setting is missing.
pub fn files(provider: &str) -> Result<Files> {
    model(format!("{provider}:files")).files()
}

impl ModelBuilder {
    /// Returns the file client of the model's provider, with the model's key, address and
    /// transport.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) as [`build`](Self::build), and if the provider
    /// stores no files for this wire.
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

    /// Uploads a file.
    ///
    /// # Errors
    /// The provider's error; [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for a media
    /// type that is not valid in a header. A failed upload is not retried: the file may already be
    /// stored.
    pub async fn upload(&self, name: &str, mime: &str, bytes: impl Into<Bytes>) -> Result<StoredFile> {
        // Mistral, recognised by its batch API, names purposes differently.
        let purpose = if self.desk.provider.batch == Some(BatchApi::Mistral) { "ocr" } else { "user_data" };
        self.api.at(&self.desk).store(name, mime, bytes.into(), purpose).await
    }

    /// Fetches the metadata of a file.
    ///
    /// # Errors
    /// The provider's error, for example if the file does not exist.
    pub async fn get(&self, id: &str) -> Result<StoredFile> {
        self.api.at(&self.desk).find(id).await
    }

    /// Lists all files, in the provider's order (newest first or last).
    ///
    /// # Errors
    /// The provider's error.
    pub async fn list(&self) -> Result<Vec<StoredFile>> {
        self.api.at(&self.desk).all().await
    }

    /// Downloads the content of a file. Most providers only return files that they generated, not
    /// uploaded ones.
    ///
    /// # Errors
    /// The provider's error.
    pub async fn download(&self, id: &str) -> Result<Bytes> {
        self.api.at(&self.desk).content(id).await
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// The provider's error.
    pub async fn delete(&self, id: &str) -> Result<()> {
        self.api.at(&self.desk).remove(id).await
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("provider", &self.desk.provider.name).finish_non_exhaustive()
    }
}
