//! Rules that a provider's refusal points to, learned from its message.

use agent_core::{Error, ErrorKind};

use super::rules::{Blanks, IdRule, Length, Reasoning, Rules};

/// A learned rule.
pub(in crate::wire) struct Learned {
    pub(in crate::wire) rules: Rules,
    /// Description for people.
    pub(in crate::wire) rule: String,
    /// False if the rule is about the content of this request, so that other requests must not
    /// follow it.
    pub(in crate::wire) is_lasting: bool,
}

/// One kind of refusal: recognises a message in lower case, and changes the rules.
type Kind = fn(&str, &mut Rules) -> Option<String>;

/// Kinds of refusals that last, the most specific first.
const LASTING: [Kind; 9] = [id_length, id_alphabet, id_unique, blank, order, tools, reasoning, image_count, schema];

/// Kinds of refusals of one request's content. A model that takes no images is among them: a message
/// that quotes a conversation must not take the images from all others.
const OF_REQUEST: [Kind; 2] = [no_images, bad_image];

impl Rules {
    /// Returns the rules with the one that the refusal points to; `None` if it points to no known
    /// rule, or requests follow that rule already.
    pub(in crate::wire) fn learn(&self, refused: &Error) -> Option<Learned> {
        if refused.kind() != ErrorKind::InvalidRequest {
            return None;
        }
        let said = refused.message().to_lowercase();
        let lasting = LASTING.iter().map(|kind| (kind, true));
        let mut kinds = lasting.chain(OF_REQUEST.iter().map(|kind| (kind, false)));
        kinds.find_map(|(kind, is_lasting)| {
            let mut rules = *self;
            let rule = kind(&said, &mut rules).filter(|_| rules != *self)?;
            Some(Learned { rules, rule, is_lasting })
        })
    }
}

fn has_any(said: &str, words: &[&str]) -> bool {
    words.iter().any(|word| said.contains(word))
}

/// Returns the first number after `marker`.
fn number(said: &str, marker: &str) -> Option<usize> {
    let (_, rest) = said.split_once(marker)?;
    rest.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
}

fn is_about_ids(said: &str) -> bool {
    has_any(
        said,
        &["call_id", "call id", "tooluseid", "tool_use.id", "tool_use_id", "tool_call.id", "].id'", "ids must"],
    )
}

fn id_length(said: &str, rules: &mut Rules) -> Option<String> {
    if !is_about_ids(said) {
        return None;
    }
    let length = match (number(said, "with a length of"), number(said, "maximum length")) {
        // Mistral: "must be a-z, A-Z, 0-9, with a length of 9".
        (Some(length), _) => Length::Exactly(length.min(32)),
        (None, Some(most)) => Length::Most(most.max(8)),
        (None, None) => return None,
    };
    rules.ids = IdRule { length, own: true, ..rules.ids };
    Some(match length {
        Length::Exactly(length) => format!("call ids of {length} letters and digits"),
        Length::Most(most) => format!("call ids of at most {most} characters"),
        Length::Any => return None,
    })
}

fn id_alphabet(said: &str, rules: &mut Rules) -> Option<String> {
    if !(is_about_ids(said) && has_any(said, &["pattern", "alphanumeric", "invalid character"])) {
        return None;
    }
    (rules.ids.plain, rules.ids.own) = (true, true);
    Some("call ids of letters, digits, '_' and '-'".into())
}

fn id_unique(said: &str, rules: &mut Rules) -> Option<String> {
    if !(has_any(said, &["unique", "duplicate"]) && has_any(said, &["ids", " id", "_id"])) {
        return None;
    }
    rules.ids.unique = true;
    Some("different ids for all calls".into())
}

fn blank(said: &str, rules: &mut Rules) -> Option<String> {
    let is_known = has_any(said, &["non-whitespace", "content blocks must be non-empty"])
        || said.contains("blank") && said.contains("text");
    if !is_known {
        return None;
    }
    rules.turns.blanks = Blanks::Refused;
    Some("no blank texts of the assistant".into())
}

fn order(said: &str, rules: &mut Rules) -> Option<String> {
    if said.contains("alternate") && said.contains("role") {
        rules.turns.alternate = true;
        return Some("messages of user and assistant that alternate".into());
    }
    if has_any(said, &["start with a user message", "first message must use", "immediately after a user turn"]) {
        rules.turns.user_first = true;
        return Some("a user message first".into());
    }
    let is_known = said.contains("unexpected role") && said.contains("after role 'tool'");
    if !is_known {
        return None;
    }
    rules.turns.answer_after_results = true;
    Some("an answer between results and the next message".into())
}

fn tools(said: &str, rules: &mut Rules) -> Option<String> {
    if !has_any(said, &["toolconfig field must be defined", "must define tools", "without `tools=` param"]) {
        return None;
    }
    rules.turns.tools_with_calls = true;
    Some("tools on offer in a conversation with calls".into())
}

fn reasoning(said: &str, rules: &mut Rules) -> Option<String> {
    if !(said.contains("reasoning_content") && has_any(said, &["missing", "must be passed", "required"])) {
        return None;
    }
    rules.turns.reasoning = Reasoning::Required;
    Some("reasoning_content in messages with calls".into())
}

fn image_count(said: &str, rules: &mut Rules) -> Option<String> {
    // vLLM: "At most 1 image(s) may be provided in one request".
    let most = said.contains("image").then(|| number(said, "at most"))?.filter(|most| *most < 1_000)?;
    rules.media.count = Some(most);
    Some(format!("at most {most} images"))
}

fn no_images(said: &str, rules: &mut Rules) -> Option<String> {
    let is_known = has_any(
        said,
        &[
            "not support image",
            "support image input",
            "image input is not supported",
            "images are not supported",
            "image_url is only supported",
            "is not a multimodal model",
            "unknown variant `image_url`",
        ],
    );
    if !is_known {
        return None;
    }
    rules.media.images = &[];
    Some("no images in this request".into())
}

fn bad_image(said: &str, rules: &mut Rules) -> Option<String> {
    let is_known = said.contains("image")
        && has_any(
            said,
            &[
                "could not process",
                "unable to process",
                "not represent a valid",
                "invalid image",
                "unsupported image",
                "failed to decode",
                "cannot identify",
                "image exceeds",
                "image dimensions",
                "too large",
            ],
        );
    if !is_known {
        return None;
    }
    rules.media.images = &[];
    Some("no images in this request".into())
}

fn schema(said: &str, rules: &mut Rules) -> Option<String> {
    if has_any(said, &["response_format", "response_schema", "responsejsonschema", "text.format", "output_format"]) {
        return None;
    }
    if said.contains("property keys should match") {
        rules.tools.plain_keys = true;
        return Some("parameters with plain names".into());
    }
    if said.contains("description") && has_any(said, &["too long", "maximum length"]) {
        rules.tools.description = Some(number(said, "maximum length").unwrap_or(1024).max(64));
        return Some("shorter descriptions of tools".into());
    }
    let is_incomplete = has_any(said, &["schema missing", "items: missing field"]);
    if is_incomplete && !rules.tools.complete {
        rules.tools.complete = true;
        return Some("'properties' and 'items' in the schemas of tools".into());
    }
    let is_known = has_any(said, &["schema", "grammar", "unknown name"])
        && has_any(said, &["function", "tool", ".parameters", "input_schema", "grammar"])
        || is_incomplete;
    if !is_known {
        return None;
    }
    (rules.tools.simple, rules.tools.plain_keys) = (true, true);
    Some("simpler schemas of tools".into())
}
