//! The shell parser, with the restrictions that make its results reliable.
//!
//! Texts that would take too long are rejected, and so are constructs that shells, or the parser's
//! own stages, interpret differently: a command could hide there. Rejected input counts as
//! unreadable.

use std::panic::{UnwindSafe, catch_unwind};

use brush_parser::{
    ParserOptions, Token, ast, parse_tokens, uncached_tokenize_str,
    word::{WordPieceWithSource, parse, parse_heredoc},
};

/// Maximum number of expansions in a line: the parser recurses on them.
const MOST_EXPANSIONS: usize = 64;

/// Maximum nesting in a word with expansions: each level takes up to five times as long.
const MOST_NESTED: usize = 6;

/// Maximum number of brackets in a word: it may be an array element, with another one as its index.
const MOST_BRACKETS: usize = 64;

/// Maximum number of compound commands in a line: for some of them, each nesting level doubles the
/// time.
const MOST_COMPOUNDS: usize = 12;

/// Words that begin a compound command.
const COMPOUND: &[&str] = &["[[", "case", "coproc", "for", "function", "if", "select", "until", "while", "{"];

/// Maximum number of digits of a file descriptor.
const MOST_DIGITS: usize = 9;

type Pieces = Vec<WordPieceWithSource>;

/// Parses the commands of a line.
pub(super) fn program(text: &str) -> Option<ast::Program> {
    if text.contains(is_strange) || beginnings(text) > MOST_EXPANSIONS {
        return None;
    }
    guarded(|| {
        let options = options();
        let tokens = uncached_tokenize_str(text, &options.tokenizer_options()).ok()?;
        if is_readable(&tokens) { parse_tokens(&tokens, &options).ok() } else { None }
    })
}

/// Parses the pieces of a word.
pub(super) fn word(text: &str) -> Option<Pieces> {
    if nested(text) > MOST_NESTED {
        return None;
    }
    guarded(|| parse(text, &options()).ok())
}

/// Parses the pieces of a text in which only expansions are special.
pub(super) fn heredoc(text: &str) -> Option<Pieces> {
    // Some shells join lines before they look for the end of the text.
    if nested(text) > MOST_NESTED || text.contains("\\\n") {
        return None;
    }
    guarded(|| parse_heredoc(text, &options()).ok())
}

/// True if all parsers agree on the end of a command substitution with this text.
pub(super) fn ends_clearly(text: &str) -> bool {
    let begins_word = |c: char| c.is_whitespace() || ";&|()".contains(c);
    let has_comment = text.match_indices('#').any(|(at, _)| text[..at].chars().next_back().is_none_or(begins_word));
    !has_comment && !text.contains("<<")
}

fn options() -> ParserOptions {
    ParserOptions { enable_extended_globbing: false, tilde_expansion_at_word_start: false, ..ParserOptions::default() }
}

/// Runs the parser; a panic counts as unreadable.
fn guarded<T>(parse: impl FnOnce() -> Option<T> + UnwindSafe) -> Option<T> {
    catch_unwind(parse).ok().flatten()
}

fn is_strange(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Counts the expansions that begin in the text.
fn beginnings(text: &str) -> usize {
    ["$(", "${", "$["].map(|beginning| text.matches(beginning).count()).iter().sum()
}

/// Estimates the nesting in the text, ignoring plain variables.
fn nested(text: &str) -> usize {
    let is_plain =
        |rest: &&str| rest.trim_start_matches(|c: char| c == '_' || c.is_ascii_alphanumeric()).starts_with('}');
    let plain = text.split("${").skip(1).filter(is_plain).count();
    match beginnings(text) - plain {
        0 => 0,
        _ => text.matches("${").count() - plain + text.matches(['(', '[']).count(),
    }
}

fn is_readable(tokens: &[Token]) -> bool {
    let (mut compounds, mut has_text, mut has_long_word) = (0, false, false);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        match token {
            Token::Operator(operator, _) if operator.starts_with("<<") && operator != "<<<" => {
                // The operator, the tag, the text, the tag again.
                if !next.is_some_and(is_plain_tag) || !matches!(tokens.get(at + 2), Some(Token::Word(..))) {
                    return false;
                }
                has_text = true;
                at += 3;
            }
            Token::Operator(operator, here) if operator == "(" => {
                // Arithmetic for some shells, two subshells for others.
                let is_double =
                    next.is_some_and(|next| next.to_str() == "(" && next.location().start.index == here.end.index);
                if is_double {
                    return false;
                }
                compounds += 1;
            }
            Token::Operator(..) => {}
            Token::Word(word, _) => {
                let is_number = word.len() > MOST_DIGITS && word.bytes().all(|c| c.is_ascii_digit());
                if nested(word) > MOST_NESTED
                    || word.matches('[').count() > MOST_BRACKETS
                    || (is_number && next.is_some_and(redirects))
                {
                    return false;
                }
                compounds += usize::from(COMPOUND.contains(&word.as_str()));
                has_long_word |= word.contains('\n');
            }
        }
        at += 1;
    }
    // Parsers disagree about the start of a here-document if a word spans several lines.
    compounds <= MOST_COMPOUNDS && !(has_text && has_long_word)
}

fn redirects(token: &Token) -> bool {
    matches!(token, Token::Operator(operator, _) if operator.starts_with(['<', '>']))
}

/// True if all parsers agree on the end of the here-document with this tag.
fn is_plain_tag(token: &Token) -> bool {
    let Token::Word(tag, _) = token else { return false };
    let quoted = ['\'', '"'].iter().find_map(|quote| tag.strip_prefix(*quote)?.strip_suffix(*quote));
    let name = quoted.or(tag.strip_prefix('\\')).unwrap_or(tag);
    !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}
