//! User input of requests.

use agent::{
    Message, Part,
    message::{Media, MediaSource, UserMessage},
};
use serde::Deserialize;

use crate::{error::ApiError, files::unknown_part};

/// User input: a text, or parts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a text, or a list of parts such as {\"text\": \"..\"}")]
pub(crate) enum Input {
    Text(String),
    Parts(Vec<InputPart>),
}

/// Part of the input.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputPart {
    Text(String),
    Image(Source),
    Document(Source),
    /// Id of an uploaded file.
    File(String),
}

/// Source of an image or a document.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Source {
    url: Option<String>,
    base64: Option<String>,
    mime: Option<String>,
    name: Option<String>,
}

impl Input {
    /// Converts the input into a message.
    ///
    /// # Errors
    /// 400 if the input is empty or a source is invalid.
    pub(crate) fn into_message(self) -> Result<Message, ApiError> {
        let parts = match self {
            Self::Text(text) => vec![Part::text(text)],
            Self::Parts(parts) => parts.into_iter().map(InputPart::into_part).collect::<Result<Vec<_>, _>>()?,
        };
        let says_nothing = |part: &Part| part.as_text().is_some_and(|text| text.trim().is_empty());
        if parts.iter().all(says_nothing) {
            return Err(ApiError::invalid("'input' is empty"));
        }
        Ok(Message::User(UserMessage::new(parts)))
    }
}

impl InputPart {
    fn into_part(self) -> Result<Part, ApiError> {
        Ok(match self {
            Self::Text(text) => Part::text(text),
            Self::Image(source) => Part::Image(source.into_media()?),
            Self::Document(source) => Part::Document(source.into_media()?),
            Self::File(id) => unknown_part(&id),
        })
    }
}

impl Source {
    fn into_media(self) -> Result<Media, ApiError> {
        let source = match (self.url, self.base64) {
            (Some(url), None) if url.starts_with("https://") || url.starts_with("http://") => MediaSource::Url(url),
            (Some(_), None) => return Err(ApiError::invalid("invalid 'url': it must begin with https:// or http://")),
            (None, Some(_)) if self.mime.is_none() => {
                return Err(ApiError::invalid("a part with 'base64' requires a 'mime' type, such as image/png"));
            }
            (None, Some(base64)) => MediaSource::Base64(base64),
            _ => return Err(ApiError::invalid("an image or document must have exactly one of 'url' and 'base64'")),
        };
        let mut media = Media::new(source);
        (media.mime, media.name) = (self.mime, self.name);
        Ok(media)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Message, String> {
        let input: Input = serde_json::from_str(json).map_err(|e| e.to_string())?;
        input.into_message().map_err(|e| e.message().to_owned())
    }

    #[test]
    fn an_input_is_a_text_or_parts() {
        assert_eq!(read(r#""Hi.""#).expect("a message").text(), "Hi.");
        let parts = r#"[{"text": "Look:"}, {"image": {"base64": "AAAA", "mime": "image/png"}}]"#;
        assert!(matches!(read(parts), Ok(Message::User(said)) if said.parts().len() == 2));
    }

    #[test]
    fn invalid_input_is_refused_with_the_reason() {
        for (json, told) in [
            (r#""  ""#, "is empty"),
            ("[]", "is empty"),
            ("7", "a text, or a list of parts"),
            (r#"[{"image": {"url": "file:///etc/passwd"}}]"#, "https://"),
            (r#"[{"image": {"base64": "AAAA"}}]"#, "mime"),
            (r#"[{"document": {}}]"#, "exactly one"),
        ] {
            let error = read(json).expect_err(json);
            assert!(error.contains(told), "{json}: {error}");
        }
    }
}
