//! Properties of all wires.

use crate::samples;

mod fuzz;
mod liar;

use agent_core::{History, Message, ModelRequest, Part, UserMessage, testing::detached_run};
use agent_llm::conformance::{Report, check, refusals};

use crate::samples::ROWS;

#[test]
fn every_wire_conforms() {
    let reports: Vec<_> = ROWS.iter().map(|row| check((row.codec)(), &(row.samples)())).collect();
    assert!(reports.iter().all(Report::is_clean), "\n{}", reports.iter().map(ToString::to_string).collect::<String>());
}

/// Such a message may come from a recording, or from another program.
#[test]
fn a_user_message_that_says_nothing_is_written_so_that_every_wire_takes_it() {
    let nothing = [Vec::new(), vec![Part::text("")], vec![Part::text(""), Part::text("")]];
    let run = detached_run(History::default());
    for (row, parts) in ROWS.iter().flat_map(|row| nothing.iter().map(move |parts| (row, parts))) {
        let mut request = ModelRequest::new(run.cx().clone());
        let silent = Message::User(UserMessage::new(parts.clone()));
        let messages = [silent, Message::assistant("Hello."), Message::user("Hi.")];
        request.messages = History::from_messages(messages).expect("paired");
        let refused = refusals(&*(row.codec)(), &request);
        assert!(refused.is_empty(), "{}, {} parts: {refused:?}", row.wire, parts.len());
    }
}
