use agent::{AssistantMessage, Block, Message, Question, Usage, history::History};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;

use super::*;

fn screen(view: &mut View, state: &mut State, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| view.draw(frame, state)).expect("it is drawn");
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

fn said(output: &str) -> State {
    let (history, _) = History::import([
        Message::user("What hums?"),
        Message::Assistant(AssistantMessage::new(vec![
            Block::text("Let me **look**."),
            Block::tool_call("c1", "read_file", "{\"path\": \"bees.md\"}"),
        ])),
        Message::Tool(agent::message::ToolMessage::text("c1", "read_file", output, false)),
        Message::assistant("# Bees\n\n- they hum"),
    ]);
    let mut state = State::new(ThemeName::None);
    state.enter("garden".into(), ("m".into(), Some(1000)), &history, Usage::default());
    state
}

#[test]
fn a_conversation_is_shown_with_its_calls_folded_and_fits_every_width() {
    let (mut view, mut state) = (View::default(), said("all about bees"));
    let wide = screen(&mut view, &mut state, (60, 16));
    for part in
        ["› What hums?", "Let me look.", "▸ ✓ read_file {\"path\": \"bees.md\"}", "Bees", "• they hum", "m · garden"]
    {
        assert!(wide.contains(part), "{part:?} is not in\n{wide}");
    }
    assert!(!wide.contains("all about bees"));
    state.items.fold();
    assert!(screen(&mut view, &mut state, (60, 20)).contains("│ all about bees"));
    for size in [(40, 12), (20, 5), (8, 3), (1, 1)] {
        screen(&mut view, &mut state, size);
    }
}

#[test]
fn a_question_stands_in_the_place_of_the_input() {
    let (mut view, mut state) = (View::default(), said(""));
    let payload = json!({"tool": "bash", "arguments": {"command": "rm -rf old"}, "why": "a rule asks"});
    state.ask(vec![Question::new("c1/approval", "approval", payload)]);
    let shown = screen(&mut view, &mut state, (40, 20));
    assert!(shown.contains("? bash {\"command\":\"rm -rf old\"}") && shown.contains("[y]es"), "{shown}");
}

#[test]
fn megabytes_of_output_are_drawn_as_fast_as_little_and_cannot_act_on_the_terminal() {
    let (mut view, mut state) = (View::default(), said(&"\x1b[2J\x07 wide 漢字 line\n".repeat(500_000)));
    state.items.fold();
    let began = std::time::Instant::now();
    let shown = screen(&mut view, &mut state, (80, 24));
    let once = began.elapsed();
    assert!(!shown.contains('\x1b') && !shown.contains('\x07'));
    (0..30).for_each(|_| drop(screen(&mut view, &mut state, (80, 24))));
    let took = began.elapsed();
    assert!(took < once * 10, "one picture is made, and then drawn again: {once:?}, {took:?}");
}

#[test]
fn scrolling_goes_no_further_than_the_beginning() {
    let (mut view, mut state) = (View::default(), said("x"));
    state.scroll = 1_000_000;
    assert!(screen(&mut view, &mut state, (40, 8)).contains("What hums?"));
    state.scroll = 0;
    assert!(screen(&mut view, &mut state, (40, 8)).contains("they hum"));
}

#[test]
fn what_is_dim_can_be_read_on_both_grounds() {
    for (name, ground) in
        [(ThemeName::Dark, ratatui::style::Color::Black), (ThemeName::Light, ratatui::style::Color::Gray)]
    {
        assert_ne!(Theme::named(name).dim.fg, Some(ground), "{name:?}");
    }
}
