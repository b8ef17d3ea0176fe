//! Repair of images: media types that match the bytes, supported formats and sizes, and no more
//! images than the provider accepts.

use agent_core::{
    Message, Part,
    message::{MediaSource, Origin},
};

use super::{
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

/// Corrects media types, and replaces each image that the provider would reject with a text. If
/// there are too many images, the oldest are removed.
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
        // Removes either all large images, or as many images as exceed the limit: whichever keeps
        // more.
        let surplus = images.len() - few;
        let large: Vec<_> = images.iter().filter(|image| image.side > side).collect();
        let left_out: Vec<_> = if large.len() > surplus { images.iter().take(surplus).collect() } else { large };
        for image in left_out {
            let why = format!("with more than {few} images, the model takes {side} pixels a side");
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
    let Part::Image(media) = parts_of(messages.get(message)?).get(part)? else { return None };
    if media.raw.as_ref().is_some_and(|raw| crate::wire::json::knows(origin, raw)) {
        return None;
    }
    // A URL may be a data URL.
    let inline = match &media.source {
        MediaSource::Url(url) if url.starts_with("data:") => media_at(url),
        _ => media.clone(),
    };
    let MediaSource::Base64(data) = &inline.source else { return None };
    let Some(kind) = kind(data) else { return Some(Image { message, part, side: 0 }) };
    let (width, height) = pixels(data, kind).unwrap_or_default();
    let side = width.max(height);
    let refusal = if !rules.images.contains(&kind) {
        Some(format!("it is {}, which the model does not take", named(kind)))
    } else if let Some(most) = rules.side.filter(|most| side > *most) {
        Some(format!("it has {width} x {height} pixels, and the model takes {most} a side"))
    } else {
        let is_long = |most: &usize| data.len() > *most;
        rules.bytes.filter(is_long).map(|most| {
            let (size, most) = (megabytes(data.len()), megabytes(most));
            format!("it has {size} MB in base64, and the model takes {most} MB")
        })
    };
    if let Some(why) = refusal {
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

fn named(kind: Kind) -> String {
    if kind == Kind::Empty { kind.mime().to_owned() } else { format!("of the type {}", kind.mime()) }
}

fn megabytes(bytes: usize) -> String {
    let tenths = bytes * 10 / (1024 * 1024);
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn leave_out(messages: &mut Messages<'_>, message: usize, part: usize, why: &str) {
    replace(messages, message, part, Part::text(format!("[image left out: {why}]")));
}

fn replace(messages: &mut Messages<'_>, message: usize, part: usize, with: Part) {
    let parts = match messages.all_mut().get_mut(message) {
        Some(Message::User(message)) => message.parts_mut(),
        Some(Message::Tool(message)) => message.parts_mut(),
        Some(Message::System(message)) => message.parts_mut(),
        _ => return,
    };
    if let Some(place) = parts.get_mut(part) {
        *place = with;
    }
}
