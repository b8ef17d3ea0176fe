//! Approval at the terminal.

use std::{
    io::{Read, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

use agent_core::ToolOutput;
use agent_middleware::{
    Approval,
    approval::{ConsoleApprover, DecisionKind},
};
use serde_json::{Value, json};

use super::{Doubler, common::call, f, root};

/// Output of a terminal.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("free").clone()).expect("text")
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("free").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A keyboard whose input the test controls. It is disconnected when the sender is dropped. Counts
/// how often it was read.
struct Keyboard(mpsc::Receiver<&'static str>, Arc<AtomicU32>);

impl Read for Keyboard {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let Ok(typed) = self.0.recv() else { return Ok(0) };
        buffer[..typed.len()].copy_from_slice(typed.as_bytes());
        Ok(typed.len())
    }
}

fn asking(input: impl Read + Send + 'static) -> (Approval, Screen) {
    let screen = Screen::default();
    (Approval::new().ask("*").decide_with(ConsoleApprover::on(input, screen.clone())), screen)
}

/// Returns the result of a call of `f` with these arguments for this input, the terminal's output,
/// and how often the tool ran.
async fn typed(lines: &'static str, args: Value) -> (ToolOutput, String, u32) {
    let (approval, screen) = asking(lines.as_bytes());
    let tool = Doubler::under(approval);
    let run = root(|_| {});
    let out = tool.call(call(run.cx(), "c1", "f", args)).await.expect("is told");
    (out, screen.text(), tool.ran())
}

#[tokio::test]
async fn yes_runs_no_does_not_and_tells_why_and_anything_else_is_asked_again() {
    for yes in ["y\n", "YES\n", "maybe\n\nsure\ny\n"] {
        let (out, screen, ran) = typed(yes, json!({"x": 3})).await;
        assert_eq!((out.to_text().as_str(), ran), ("6", 1), "{yes}");
        assert_eq!(screen.matches("Run 'f'? [y]es / [n]o / [m]odify: ").count(), yes.lines().count());
        assert!(screen.contains("Tool: f (") && screen.contains("  x = 3\n"), "{screen}");
    }
    let (out, _, ran) = typed("n\ntoo much\n", json!({"x": 3})).await;
    let told = "Tool execution for 'f' was rejected by the user.";
    assert_eq!((out.to_text(), ran), (format!("{told} With user feedback: too much"), 0));
    assert_eq!(typed("no\n\n", json!({"x": 3})).await.0.to_text(), told);
}

#[tokio::test]
async fn a_closed_terminal_is_a_rejection() {
    for cut in ["", "perhaps\n", "m\n", "n\n"] {
        let (out, _, ran) = typed(cut, json!({"x": 3})).await;
        assert!(out.is_error() && ran == 0, "{cut:?}");
    }
}

#[tokio::test]
async fn arguments_are_modified_one_by_one_text_as_it_is_and_the_rest_as_json() {
    let (out, screen, _) = typed("m\nnine\n9\n\n", json!({"x": 3, "y": "why"})).await;
    assert!(out.to_text().ends_with("18") && out.to_text().contains(r#"{"x":9,"y":"why"}"#), "{}", out.to_text());
    assert!(screen.contains("x = 3 (enter keeps it): That is no JSON.\nx = 3"), "{screen}");
    let (out, ..) = typed("m\n\n2\n", json!({"x": 3, "y": "why"})).await;
    assert!(out.to_text().contains(r#"{"x":3,"y":"2"}"#), "a text stays a text");
    assert_eq!(typed("m\n\n", json!({"x": 3})).await.0.to_text(), "6", "nothing changed: as it was");
    let (out, screen, _) = typed("m\ny\n", json!({})).await;
    assert!(!out.is_error() && screen.contains("no arguments to modify"));
}

#[tokio::test]
async fn only_what_is_accepted_is_offered_and_taken() {
    let (approval, screen) = asking("m\n9\ny\n".as_bytes());
    let tool = Doubler::under(approval.decisions([DecisionKind::Approve]));
    let run = root(|_| {});
    assert_eq!(tool.call(f(run.cx(), "c1")).await.expect("runs").to_text(), "6");
    assert!(screen.text().contains("Run 'f'? [y]es / [n]o: "));
}

#[tokio::test]
async fn nothing_that_is_shown_moves_the_cursor_hides_itself_or_turns_the_text_around() {
    let hidden = "\u{1b}[2K\r\u{202e}\u{2066}\u{200b}\u{9b}\u{7}\u{feff}\u{e0041}\n";
    let args = json!({ (format!("x{hidden}")): format!("evil{hidden}"), "x": 1, "nested": [hidden] });
    let (_, screen, _) = typed("m\n\n\n\n", args).await;
    assert!(screen.contains("evil") && screen.contains(r"\u{202e}"), "{screen:?}");
    let shown = screen.replace('\n', "");
    let is_plain = |c: char| !c.is_control() && !hidden.contains(c) || c.is_ascii_graphic() || c == ' ';
    assert!(shown.chars().all(is_plain), "{screen:?}");
    assert_eq!(screen.lines().count(), 2 + 3 + 1, "no line that nobody wrote: {screen}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_is_none_and_does_not_answer_the_next_question() {
    let ((keys, keyboard), reads) = (mpsc::channel(), Arc::new(AtomicU32::new(0)));
    let (approval, screen) = asking(Keyboard(keyboard, reads.clone()));
    let tool = Doubler::under(approval.timeout(Duration::from_secs(60)));
    let run = root(|_| {});
    let late = tool.call(f(run.cx(), "c1")).await.expect("is told");
    assert!(late.to_text().contains("nobody decided in time"), "{}", late.to_text());
    assert!(screen.text().ends_with("No answer in time: the call is rejected.\n"));

    keys.send("y\n").expect("plugged in");
    while reads.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now(); // the terminal has buffered the line when this continues
    }
    let again = tool.call(f(run.cx(), "c2")).await.expect("is told");
    assert!(again.is_error() && tool.ran() == 0, "what was typed before the question was shown is no answer to it");
}

#[tokio::test]
async fn two_calls_are_asked_about_one_after_the_other() {
    let (keys, keyboard) = mpsc::channel();
    let (approval, screen) = asking(Keyboard(keyboard, Arc::default()));
    let tool = Doubler::under(approval);
    let run = root(|_| {});
    let watch = screen.clone();
    let typist = std::thread::spawn(move || {
        for asked in 1..=2 {
            while watch.text().matches("Run 'f'?").count() < asked {
                std::thread::yield_now();
            }
            assert_eq!(watch.text().matches("Tool: f").count(), asked, "one at a time");
            keys.send("y\n").expect("plugged in");
        }
    });
    let (one, two) = tokio::join!(tool.call(f(run.cx(), "c1")), tool.call(f(run.cx(), "c2")));
    assert_eq!((one.expect("runs").to_text(), two.expect("runs").to_text()), ("6".to_owned(), "6".to_owned()));
    typist.join().expect("no panic");
}
