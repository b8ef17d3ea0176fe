//! Formatting for the terminal.

use serde_json::Value;

use super::super::{ApprovalRequest, DecisionKind};

/// Formats the call for a person.
pub(super) fn question(request: &ApprovalRequest) -> String {
    let description = request.description.as_deref().filter(|text| !text.is_empty());
    let description = description.map(|text| format!("  {}\n", visible(text))).unwrap_or_default();
    let arguments: String = match &request.arguments {
        Value::Object(arguments) => {
            arguments.iter().map(|(name, value)| format!("  {}\n", pair(name, value))).collect()
        }
        other => format!("  {}\n", visible(&other.to_string())),
    };
    format!("\nTool: {} ({})\n{description}{arguments}", visible(&request.tool), visible(&request.why))
}

/// Formats the accepted answers. The tool is named again, since the arguments may have filled the
/// screen.
pub(super) fn menu(request: &ApprovalRequest) -> String {
    let answers = [(DecisionKind::Approve, "[y]es"), (DecisionKind::Reject, "[n]o"), (DecisionKind::Edit, "[m]odify")];
    let accepted = answers.iter().filter(|(kind, _)| request.decisions.contains(kind) || *kind == DecisionKind::Reject);
    let answers: Vec<_> = accepted.map(|(_, answer)| *answer).collect();
    format!("Run '{}'? {}: ", visible(&request.tool), answers.join(" / "))
}

/// Prompts for a new value of an argument.
pub(super) fn argument(name: &str, value: &Value) -> String {
    format!("{} (enter keeps it): ", pair(name, value))
}

fn pair(name: &str, value: &Value) -> String {
    format!("{} = {}", visible(name), visible(&value.to_string()))
}

/// Escapes everything in the text that a terminal would interpret or not show.
fn visible(text: &str) -> String {
    let shown = |c: char| match is_hidden(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// True for control characters, marks that change the direction of text, and invisible characters.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{ad}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
