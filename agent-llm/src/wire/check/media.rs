//! Repair of images: media types that match the bytes, supported formats and sizes, and no more
//! images than the provider accepts.

use agent_core::{
    Media, Message, Part,
    message::{MediaSource, Origin},
};

use super::{
    describe::described,
    messages::Messages,
    rules::MediaRules,
    sizes::{Kind, kind, pixels},
};
use crate::wire::content::{media_at, parts_of};

/// An image of the conversation that is sent inline.
struct Image {
    message: usize,
    part: usize,
    /// Longer side in pixels; 0 if unknown.
    side: u32,
}

/// Limits of one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Limits {
    /// Maximum length of the longer side, in pixels.
    pub(super) side: Option<u32>,
    /// Maximum number of base64 characters.
    pub(super) bytes: Option<usize>,
}

/// Corrects media types. Scales each image that exceeds a limit of the provider, or replaces it
/// with a text if it cannot be scaled or the provider rejects its format; a note says so. If there
/// are too many images, the oldest are removed.
pub(super) fn repair(messages: &mut Messages<'_>, origin: &Origin, rules: &MediaRules) {
    let mut images = Vec::new();
    for message in 0..messages.len() {
        let parts = messages.get(message).map_or(0, |message| parts_of(message).len());
        for part in 0..parts {
            images.extend(repair_part(messages, origin, rules, message, part));
        }
    }
    let surplus = rules.count.map_or(0, |most| images.len().saturating_sub(most));
    for image in images.drain(..surplus) {
        let why = format!("the model takes {} images at once", rules.count.unwrap_or_default());
        leave_out(messages, image.message, image.part, &why);
    }
    if let Some((few, side)) = rules.many.filter(|(few, _)| images.len() > *few) {
        let why = format!("with more than {few} images, the model takes {side} pixels a side");
        let limits = Limits { side: Some(side), bytes: rules.bytes };
        let large = images.iter_mut().filter(|image| image.side > side);
        large.for_each(|image| {
            if scale(messages, image.message, image.part, limits, &why) {
                image.side = side;
            }
        });
        // Removes either all that are still large, or as many images as exceed the limit: whichever
        // keeps more.
        let surplus = images.len() - few;
        let large: Vec<_> = images.iter().filter(|image| image.side > side).collect();
        let left_out: Vec<_> = if large.len() > surplus { images.iter().take(surplus).collect() } else { large };
        for image in left_out {
            leave_out(messages, image.message, image.part, &why);
        }
    }
}

/// Repairs one part. Returns the image that it contains, if it is sent.
fn repair_part(
    messages: &mut Messages<'_>,
    origin: &Origin,
    rules: &MediaRules,
    message: usize,
    part: usize,
) -> Option<Image> {
    let inline = inline(messages, message, part).filter(|media| {
        !media.raw.as_ref().is_some_and(|raw| crate::wire::json::knows(origin, raw)) // sent as it came
    })?;
    let MediaSource::Base64(data) = &inline.source else { return None };
    let Some(kind) = kind(data) else { return Some(Image { message, part, side: 0 }) };
    if !rules.images.contains(&kind) {
        let described = described(data, kind).map(|text| format!(". {text}")).unwrap_or_default();
        let why = format!("it is {}, which the model does not take{described}", named(kind));
        leave_out(messages, message, part, &why);
        return None;
    }
    let (width, height) = pixels(data, kind).unwrap_or_default();
    let side = width.max(height);
    if let Some(why) = exceeded(rules, (width, height), data.len()) {
        let limits = Limits { side: rules.side, bytes: rules.bytes };
        if scale(messages, message, part, limits, &why) {
            let side = rules.side.map_or(side, |most| side.min(most));
            return Some(Image { message, part, side });
        }
        leave_out(messages, message, part, &why);
        return None;
    }
    if inline.mime.as_deref() != Some(kind.mime()) && (inline.mime.is_some() || kind != Kind::Png) {
        let mut typed = inline;
        (typed.mime, typed.raw) = (Some(kind.mime().into()), None);
        replace(messages, message, part, Part::Image(typed));
    }
    Some(Image { message, part, side })
}

/// Returns the image of the part. A URL may be a data URL.
fn inline(messages: &Messages<'_>, message: usize, part: usize) -> Option<Media> {
    let Part::Image(media) = parts_of(messages.get(message)?).get(part)? else { return None };
    Some(match &media.source {
        MediaSource::Url(url) if url.starts_with("data:") => {
            let mut inline = media_at(url);
            inline.raw.clone_from(&media.raw);
            inline
        }
        _ => media.clone(),
    })
}

/// Returns the limit that an image exceeds, in words.
fn exceeded(rules: &MediaRules, (width, height): (u32, u32), length: usize) -> Option<String> {
    if let Some(most) = rules.side.filter(|most| width.max(height) > *most) {
        return Some(format!("it has {width} x {height} pixels, and the model takes {most} a side"));
    }
    rules.bytes.filter(|most| length > *most).map(|most| {
        let (size, most) = (megabytes(length), megabytes(most));
        format!("it has {size} MB in base64, and the model takes {most} MB")
    })
}

/// Scales the image to the limits, with a note at the end of the message. Returns false if it cannot
/// be scaled.
#[cfg(feature = "images")]
fn scale(messages: &mut Messages<'_>, message: usize, part: usize, limits: Limits, why: &str) -> bool {
    let Some(media) = inline(messages, message, part) else { return false };
    let MediaSource::Base64(data) = &media.source else { return false };
    let Some(scaled) = kind(data).and_then(|kind| super::scale::scaled(data, kind, limits)) else { return false };
    let (width, height) = (scaled.width, scaled.height);
    let small = Media::base64(&*scaled.base64, scaled.kind.mime());
    replace(messages, message, part, Part::Image(small));
    if let Some(parts) = parts_mut(messages, message) {
        parts.push(Part::text(format!("[image scaled to {width} x {height} pixels: {why}]")));
    }
    true
}

#[cfg(not(feature = "images"))]
fn scale(_: &mut Messages<'_>, _: usize, _: usize, _: Limits, _: &str) -> bool {
    false
}

fn named(kind: Kind) -> String {
    match kind {
        Kind::Empty | Kind::Text => kind.mime().to_owned(),
        _ => format!("of the type {}", kind.mime()),
    }
}

fn megabytes(bytes: usize) -> String {
    let tenths = bytes * 10 / (1024 * 1024);
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn leave_out(messages: &mut Messages<'_>, message: usize, part: usize, why: &str) {
    replace(messages, message, part, Part::text(format!("[image left out: {why}]")));
}

fn replace(messages: &mut Messages<'_>, message: usize, part: usize, with: Part) {
    if let Some(place) = parts_mut(messages, message).and_then(|parts| parts.get_mut(part)) {
        *place = with;
    }
}

fn parts_mut<'m>(messages: &'m mut Messages<'_>, message: usize) -> Option<&'m mut Vec<Part>> {
    Some(match messages.all_mut().get_mut(message)? {
        Message::User(message) => message.parts_mut(),
        Message::Tool(message) => message.parts_mut(),
        Message::System(message) => message.parts_mut(),
        Message::Assistant(_) => return None,
    })
}
