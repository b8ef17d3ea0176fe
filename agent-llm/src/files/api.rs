//! Each provider's file API.

use std::collections::HashSet;

use agent_core::Result;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde_json::{Value, json};

use super::{StoredFile, multipart::form};
use crate::{
    FileApi,
    batch::invalid,
    provider::desk::{Desk, headers, protocol, text},
    wire::{anthropic::FILES, endpoint::percent_encoded},
};

/// Maximum number of files per page.
const PAGE: &str = "100";

/// Maximum number of pages of a listing.
const PAGES: usize = 10_000;

impl FileApi {
    /// Binds this API to a client.
    pub(crate) fn at(self, desk: &Desk) -> Shelf<'_> {
        Shelf { api: self, desk }
    }
}

/// File API client of one provider.
pub(crate) struct Shelf<'a> {
    api: FileApi,
    desk: &'a Desk,
}

impl Shelf<'_> {
    /// Uploads a file for a purpose, which only OpenAI's API requires.
    pub(crate) async fn store(&self, name: &str, mime: &str, bytes: Bytes, purpose: &str) -> Result<StoredFile> {
        if HeaderValue::try_from(mime).is_err() {
            return Err(invalid("the media type of the file has characters that no header takes".to_owned()));
        }
        if self.api == FileApi::Gemini {
            return self.store_at_google(name, mime, bytes).await;
        }
        let fields = [("purpose", purpose)];
        let fields: &[_] = if self.api == FileApi::OpenAi { &fields } else { &[] };
        let (kind, body) = form(fields, name, mime, &bytes);
        let mut headers = self.headers();
        headers.extend(self::headers([("content-type", &kind)]));
        let (_, said) = self.desk.post(self.uri("")?, &headers, body).await?;
        self.read(&self.desk.json(&said)?)
    }

    /// Uploads to Google in two steps: the first announces the file and returns the upload URL.
    async fn store_at_google(&self, name: &str, mime: &str, bytes: Bytes) -> Result<StoredFile> {
        let length = bytes.len().to_string();
        let begin = headers([
            ("content-type", "application/json"),
            ("x-goog-upload-protocol", "resumable"),
            ("x-goog-upload-command", "start"),
            ("x-goog-upload-header-content-length", &length),
            ("x-goog-upload-header-content-type", mime),
        ]);
        let about = json!({"file": {"display_name": name}}).to_string();
        let (head, _) = self.desk.post(self.beside("upload", "/files")?, &begin, about.into()).await?;
        let place = head.get("x-goog-upload-url").and_then(|url| url.to_str().ok());
        let place = place.ok_or_else(|| protocol(self.provider(), "it named no address for the upload"))?;
        let all = headers([("x-goog-upload-offset", "0"), ("x-goog-upload-command", "upload, finalize")]);
        let (_, said) = self.desk.post(self.desk.own(place)?, &all, bytes).await?;
        self.read(&self.desk.json(&said)?["file"])
    }

    pub(super) async fn find(&self, id: &str) -> Result<StoredFile> {
        self.read(&self.desk.get_json(self.uri(&self.path(id))?, &self.headers()).await?)
    }

    pub(super) async fn all(&self) -> Result<Vec<StoredFile>> {
        let (mut all, mut from, mut seen) = (Vec::new(), String::new(), HashSet::new());
        for _ in 0..PAGES {
            let said = self.desk.get_json(self.uri(&self.page(&from))?, &self.headers()).await?;
            let list = if self.api == FileApi::Gemini { &said["files"] } else { &said["data"] };
            let before = all.len();
            for file in list.as_array().into_iter().flatten() {
                all.push(self.read(file)?);
            }
            let next = match self.api {
                FileApi::Gemini => said["nextPageToken"].as_str().map(str::to_owned),
                _ if said["next_page"].is_string() => said["next_page"].as_str().map(str::to_owned),
                _ if said["has_more"] == true => all.last().map(|last: &StoredFile| last.id.clone()),
                _ => None,
            };
            match next {
                // A page without files is the last one.
                Some(next) if all.len() > before => from = next,
                _ => return Ok(all),
            }
            if !seen.insert(from.clone()) {
                return Err(protocol(self.provider(), "the list of files comes back to a page that it had already"));
            }
        }
        Err(protocol(self.provider(), "the list of files has no end"))
    }

    pub(crate) async fn content(&self, id: &str) -> Result<Bytes> {
        self.desk.download(self.content_uri(id)?, &self.headers()).await
    }

    /// Returns the URI of a file's content.
    pub(crate) fn content_uri(&self, id: &str) -> Result<Uri> {
        match self.api {
            FileApi::Gemini => self.beside("download", &format!("{}:download?alt=media", self.name(id))),
            _ => self.uri(&format!("{}/content", self.path(id))),
        }
    }

    pub(super) async fn remove(&self, id: &str) -> Result<()> {
        self.desk.get(Method::DELETE, self.uri(&self.path(id))?, &self.headers()).await.map(drop)
    }

    /// Returns the headers of every request.
    pub(crate) fn headers(&self) -> HeaderMap {
        match (self.api, &self.desk.provider.anthropic) {
            (FileApi::Anthropic, Some(profile)) => {
                headers([("anthropic-version", &profile.version), ("anthropic-beta", FILES)])
            }
            _ => HeaderMap::new(),
        }
    }

    fn uri(&self, path: &str) -> Result<Uri> {
        let files = if self.api == FileApi::Anthropic { "/v1/files" } else { "/files" };
        self.desk.uri(&format!("{files}{path}"))
    }

    /// Returns a Google URI with `word` in front of its path.
    fn beside(&self, word: &str, path: &str) -> Result<Uri> {
        let base = self.desk.base_url();
        let (scheme, rest) = base.split_once("://").unwrap_or(("https", base));
        let (host, version) = rest.split_once('/').unwrap_or((rest, ""));
        crate::wire::endpoint::endpoint(&format!("{scheme}://{host}/{word}/{version}"), path)
    }

    /// Returns Google's resource name of a file, which includes the collection.
    fn name(&self, id: &str) -> String {
        format!("/files/{}", percent_encoded(id.strip_prefix("files/").unwrap_or(id)))
    }

    fn path(&self, id: &str) -> String {
        format!("/{}", percent_encoded(id.strip_prefix("files/").unwrap_or(id)))
    }

    fn page(&self, from: &str) -> String {
        let (size, token) = match self.api {
            FileApi::Gemini => ("pageSize", "pageToken"),
            FileApi::Anthropic if from.starts_with("page_") => ("limit", "page"),
            FileApi::Anthropic => ("limit", "after_id"),
            FileApi::OpenAi => ("limit", "after"),
        };
        let after = if from.is_empty() { String::new() } else { format!("&{token}={}", percent_encoded(from)) };
        format!("?{size}={PAGE}{after}")
    }

    fn provider(&self) -> &str {
        &self.desk.provider.name
    }

    fn read(&self, said: &Value) -> Result<StoredFile> {
        let own = |field: &str| said[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(match self.api {
            FileApi::Gemini => StoredFile {
                id: text(self.provider(), said, "/name")?.to_owned(),
                name: own("displayName").unwrap_or_default(),
                mime: own("mimeType"),
                // A 64-bit number may arrive as a JSON string.
                bytes: said["sizeBytes"].as_str().and_then(|bytes| bytes.parse().ok()).unwrap_or_default(),
                uri: own("uri"),
            },
            _ => StoredFile {
                id: text(self.provider(), said, "/id")?.to_owned(),
                name: own("filename").unwrap_or_default(),
                mime: own("mime_type"),
                bytes: said["bytes"].as_u64().or(said["size_bytes"].as_u64()).unwrap_or_default(),
                uri: None,
            },
        })
    }
}
