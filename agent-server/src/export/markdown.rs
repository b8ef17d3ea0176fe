//! Markdown export of conversations.

use agent::{Block, Message, Part};

use super::{Chapter, moment};

/// Formats a session.
pub(super) fn chapter(chapter: &Chapter) -> String {
    let title = chapter.info.title.as_deref().unwrap_or(&chapter.name).replace(['\n', '\r'], " ");
    let mut text = format!("# {title}\n\n");
    let info = &chapter.info;
    text.push_str(&format!("{} runs, {} to {} UTC\n\n", info.runs, moment(info.created), moment(info.updated)));
    for (agent, history) in &chapter.sides {
        if chapter.sides.len() > 1 {
            text.push_str(&format!("## Agent {agent}\n\n"));
        }
        text.push_str(&conversation(history.iter()));
    }
    text
}

/// Formats messages as Markdown, each below a line with its author. Code fences are longer than any
/// fence in the code.
pub fn conversation<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let mut text = String::new();
    for message in messages {
        let who = match message {
            Message::Tool(result) if result.is_error() => format!("Result of {} (failed)", result.name()),
            Message::Tool(result) => format!("Result of {}", result.name()),
            _ => capital(message.role()),
        };
        text.push_str(&format!("**{who}**\n\n{}\n\n", body(message)));
    }
    text
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn body(message: &Message) -> String {
    let parts = match message {
        Message::Assistant(said) => said.blocks().iter().filter_map(block).collect::<Vec<_>>(),
        Message::Tool(result) => return fenced("text", &Message::Tool(result.clone()).text()),
        Message::User(said) => said.parts().iter().map(part).collect(),
        Message::System(said) => said.parts().iter().map(part).collect(),
    };
    parts.join("\n\n")
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(text) => text.text.clone(),
        Part::Image(media) => format!("*(image {})*", media.name.as_deref().unwrap_or_default()),
        Part::Document(media) => format!("*(document {})*", media.name.as_deref().unwrap_or_default()),
        _ => "*(provider-specific content)*".into(),
    }
}

fn block(block: &Block) -> Option<String> {
    Some(match block {
        Block::Text(text) => text.text.clone(),
        Block::Reasoning(thought) if !thought.text.is_empty() => {
            thought.text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
        }
        Block::ToolCall(call) => format!("Calls `{}`:\n\n{}", call.name, fenced("json", &call.arguments)),
        Block::Image(_) => "*(image)*".into(),
        Block::Document(_) => "*(document)*".into(),
        Block::Server(call) => format!("Called `{}` at the provider.", call.name),
        _ => return None,
    })
}

/// Formats a code block whose fence is longer than any in the text.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_result_ends_its_fence() {
        assert_eq!(fenced("text", "a\n````\nb"), "`````text\na\n````\nb\n`````");
        assert_eq!(fenced("json", "{}"), "```json\n{}\n```");
    }
}
