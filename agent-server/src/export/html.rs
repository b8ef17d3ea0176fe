//! HTML export of conversations, as one self-contained page.

use agent::{Block, Message, Part};

use super::{Chapter, moment, plain};

/// Head of an HTML page of [chapters](Chapter::html). The content is not trusted: the page's policy
/// forbids scripts and external resources.
pub const HTML_HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Sessions</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
article { border-left: .25rem solid #8888; margin: 1rem 0; padding: .1rem 1rem; }
article.user { border-color: #3a7; }
article.assistant { border-color: #37c; }
h3 { font-size: .9rem; margin: .4rem 0; }
p, pre { white-space: pre-wrap; overflow-wrap: anywhere; }
pre { background: #8881; padding: .5rem; max-height: 30rem; overflow: auto; }
small { opacity: .7; }
</style>
</head>
<body>
"#;

/// Foot of the page.
pub const HTML_FOOT: &str = "</body>\n</html>\n";

/// Formats a session.
pub(super) fn chapter(chapter: &Chapter) -> String {
    let title = chapter.info.title.as_deref().unwrap_or(&chapter.name);
    let info = &chapter.info;
    let mut page = format!("<h1>{}</h1>\n", escaped(title));
    let when = format!("{} runs, {} to {} UTC", info.runs, moment(info.created), moment(info.updated));
    page.push_str(&format!("<small>{when}</small>\n"));
    for (agent, history) in &chapter.sides {
        page.push_str(&format!("<h2>{}</h2>\n", escaped(agent)));
        history.iter().for_each(|message| page.push_str(&article(message)));
    }
    page
}

fn article(message: &Message) -> String {
    let role = message.role();
    let content = match message {
        Message::Assistant(said) => said.blocks().iter().map(block).collect::<String>(),
        Message::Tool(_) => folded("result", &message.text()),
        Message::User(said) => said.parts().iter().map(part).collect(),
        Message::System(said) => said.parts().iter().map(part).collect(),
    };
    let who = message.as_tool().map_or_else(|| role.to_owned(), |result| format!("result of {}", result.name()));
    format!("<article class=\"{role}\">\n<h3>{}</h3>\n{content}</article>\n", escaped(&who))
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(text) => format!("<p>{}</p>\n", escaped(&text.text)),
        Part::Image(media) | Part::Document(media) => {
            format!("<p><small>{}</small></p>\n", escaped(media.name.as_deref().unwrap_or("a file")))
        }
        _ => String::new(),
    }
}

fn block(block: &Block) -> String {
    match block {
        Block::Text(text) => format!("<p>{}</p>\n", escaped(&text.text)),
        Block::Reasoning(thought) if !thought.text.is_empty() => folded("reasoning", &thought.text),
        Block::ToolCall(call) => folded(&format!("calls {}", call.name), &call.arguments),
        Block::Server(call) => {
            folded(&format!("called {} at the provider", call.name), call.input.as_deref().unwrap_or(""))
        }
        _ => String::new(),
    }
}

fn folded(what: &str, text: &str) -> String {
    format!("<details><summary>{}</summary><pre>{}</pre></details>\n", escaped(what), escaped(text))
}

/// Escapes text for HTML content and attributes; replaces control characters, which HTML forbids.
fn escaped(text: &str) -> String {
    let mut page = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            _ => page.push(c),
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_text_of_the_page_and_never_a_part_of_it() {
        let said = Message::user("</p><script>alert('1')</script>&amp;\x1b[2J");
        let page = article(&said);
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;"), "{page}");
        assert!(!page.contains('\x1b'));
    }
}
