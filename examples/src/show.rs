//! Terminal output of runs.

use agent::core::History;

/// Prints a conversation, message by message, with the model's tool calls.
pub fn history(history: &History) {
    for message in history.iter() {
        println!("{:>9}: {}", message.role(), message.text().replace('\n', "\n           "));
        for call in message.as_assistant().iter().flat_map(|said| said.calls()) {
            println!("{:>9}  -> {} {}", "", call.name, call.arguments);
        }
    }
}
