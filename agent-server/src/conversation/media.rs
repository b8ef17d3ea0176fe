//! Check of media in client messages.

use agent::{
    Message, Part,
    message::{Media, MediaSource},
};

use crate::error::ApiError;

/// Checks that media are inline or at an `http(s)` URL. Files at a provider belong to the operator,
/// and other URLs would be read with the operator's privileges.
///
/// # Errors
/// 400 for any other source.
pub(crate) fn check_media(messages: &[Message]) -> Result<(), ApiError> {
    let users = messages.iter().filter_map(|message| match message {
        Message::User(user) => Some(user.parts()),
        _ => None,
    });
    users.flatten().try_for_each(|part| match part {
        Part::Image(media) | Part::Document(media) => check(media),
        _ => Ok(()),
    })
}

fn check(media: &Media) -> Result<(), ApiError> {
    let is_fine = match &media.source {
        MediaSource::Base64(_) => true,
        MediaSource::Url(url) => url.starts_with("https://") || url.starts_with("http://"),
        _ => false,
    };
    if is_fine {
        Ok(())
    } else {
        Err(ApiError::invalid("media must be inline in the message or at an https:// or http:// URL"))
    }
}

#[cfg(test)]
mod tests {
    use agent::message::UserMessage;

    use super::*;

    #[test]
    fn what_only_the_operator_may_read_is_refused() {
        let with =
            |media| check_media(&[Message::User(UserMessage::new(vec![Part::text("look"), Part::Image(media)]))]);
        assert!(
            with(Media::url("https://example.com/a.png")).is_ok() && with(Media::base64("aGk=", "image/png")).is_ok()
        );
        for media in [Media::url("s3://bucket/key"), Media::url("file:///etc/passwd"), Media::file("file-1")] {
            assert!(with(media.clone()).is_err(), "{media:?}");
        }
    }
}
