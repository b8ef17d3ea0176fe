//! Messages in the gpt-oss format ("harmony") that a server left in the text.

use agent_core::Block;

use crate::wire::ids::call_id;

const CHANNEL: &str = "<|channel|>";
const START: &str = "<|start|>";
const MESSAGE: &str = "<|message|>";

/// Replaces texts in this format with blocks for thinking, text and calls. `response` is the id of
/// the response, for generated call ids. Returns true if there were any such texts.
pub(super) fn read(blocks: &mut Vec<Block>, response: &str) -> bool {
    let is_format = |block: &Block| match block {
        Block::Text(text) => {
            let said = text.text.trim_start();
            (said.starts_with(CHANNEL) || said.starts_with(START)) && said.contains(MESSAGE)
        }
        _ => false,
    };
    if !blocks.iter().any(is_format) {
        return false;
    }
    let mut calls = blocks.iter().filter(|block| matches!(block, Block::ToolCall(_))).count();
    let read = std::mem::take(blocks).into_iter().flat_map(|block| match block {
        Block::Text(text) if is_format(&Block::Text(text.clone())) => messages(&text.text, response, &mut calls),
        other => vec![other],
    });
    *blocks = read.collect();
    true
}

fn messages(text: &str, response: &str, calls: &mut usize) -> Vec<Block> {
    const ENDS: [&str; 4] = ["<|end|>", "<|call|>", "<|return|>", START];
    let (mut blocks, mut rest) = (Vec::new(), text);
    while let Some((head, said)) = rest.split_once(MESSAGE) {
        let end = ENDS.iter().filter_map(|end| said.find(end)).min().unwrap_or(said.len());
        let content = &said[..end];
        rest = &said[end..];
        let recipient = head.split("to=").nth(1).map(|to| to.split([' ', '<']).next().unwrap_or_default());
        let channel = head.rsplit(CHANNEL).next().unwrap_or_default().trim_start();
        match recipient.map(|to| to.strip_prefix("functions.").unwrap_or(to)).filter(|name| !name.is_empty()) {
            Some(name) => {
                blocks.push(Block::tool_call(call_id(response, *calls), name, content.trim()));
                *calls += 1;
            }
            None if content.trim().is_empty() => {}
            None if channel.starts_with("analysis") => blocks.push(Block::reasoning(content)),
            None => blocks.push(Block::text(content)),
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_the_text_is_a_call_and_thinking_is_thinking() {
        let text = "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary \
                    to=functions.query <|constrain|>json<|message|>{\"q\":1}<|call|>";
        let mut blocks = vec![Block::text(text)];
        assert!(read(&mut blocks, "r1"));
        assert_eq!(blocks, [Block::reasoning("I look."), Block::tool_call("call_r1_0", "query", "{\"q\":1}")]);
        let mut blocks = vec![Block::text("<|start|>assistant<|channel|>final<|message|>Four.<|return|>")];
        assert!(read(&mut blocks, "r1"));
        assert_eq!(blocks, [Block::text("Four.")]);
    }

    #[test]
    fn a_text_about_the_format_stays() {
        let mut blocks = vec![Block::text("The token <|channel|> begins a channel, <|message|> its content.")];
        assert!(!read(&mut blocks, "r1"));
    }
}
