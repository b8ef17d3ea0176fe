use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::*;

fn state() -> State {
    let mut state = State::new(ThemeName::None);
    state.enter("garden".into(), ("m".into(), Some(100)), &History::default(), Usage::default());
    state
}

fn press(state: &mut State, code: KeyCode) -> Option<Action> {
    state.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn control(state: &mut State, c: char) -> Option<Action> {
    state.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL))
}

fn say(state: &mut State, text: &str) -> Option<Action> {
    text.chars().for_each(|c| drop(press(state, KeyCode::Char(c))));
    press(state, KeyCode::Enter)
}

#[test]
fn a_line_is_sent_and_while_a_run_is_under_way_it_steers() {
    let mut state = state();
    assert_eq!(say(&mut state, "hello"), Some(Action::Send("hello".into())));
    state.begin("thinking");
    assert_eq!(say(&mut state, "in short"), Some(Action::Steer("in short".into())));
    assert_eq!(press(&mut state, KeyCode::Esc), Some(Action::Interrupt));
    state.rest();
    assert_eq!(press(&mut state, KeyCode::Esc), None);
    assert_eq!(control(&mut state, 'c'), Some(Action::Quit));
}

#[test]
fn what_was_said_is_recalled_and_searched() {
    let mut state = state();
    for text in ["about bees", "about cats", "more bees"] {
        say(&mut state, text);
    }
    press(&mut state, KeyCode::Up);
    press(&mut state, KeyCode::Up);
    assert_eq!(state.input.text(), "about cats");
    control(&mut state, 'r');
    "BEES".chars().for_each(|c| drop(press(&mut state, KeyCode::Char(c))));
    assert_eq!(state.found(), Some("more bees"));
    control(&mut state, 'r');
    assert_eq!(state.found(), Some("about bees"));
    control(&mut state, 'r');
    assert_eq!(state.found(), Some("about bees"), "there is no older one");
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.input.text(), "about bees");
}

#[test]
fn a_saved_prompt_is_a_command_beside_those_of_the_chat() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join(".agent/commands")).expect("made");
    for name in ["review", "usage"] {
        let file = folder.path().join(format!(".agent/commands/{name}.md"));
        std::fs::write(file, "Review $ARGUMENTS.").expect("written");
    }
    let mut state = state();
    state.prompts = crate::saved_prompts::saved_prompts(folder.path());
    assert_eq!(say(&mut state, "/review it"), Some(Action::Send("Review it.".into())));
    assert_eq!(say(&mut state, "/usage"), None, "the chat's own command comes first");
    state.write("/rev");
    press(&mut state, KeyCode::Tab);
    assert_eq!(state.input.text(), "/review ");
}

#[test]
fn commands_are_completed_as_far_as_they_agree_and_what_is_none_is_said() {
    let mut state = state();
    state.write("/ses");
    press(&mut state, KeyCode::Tab);
    assert_eq!(state.input.text(), "/session");
    state.write("/th");
    press(&mut state, KeyCode::Tab);
    assert_eq!(state.input.text(), "/theme ");
    state.write("");
    assert_eq!(say(&mut state, "/fork garden-2"), Some(Action::Fork("garden-2".into())));
    assert_eq!(say(&mut state, "/theme light"), None);
    assert_eq!(state.theme, ThemeName::Light);
    for wrong in ["/nothing", "/fork", "/theme pink"] {
        assert_eq!(say(&mut state, wrong), None);
        assert_eq!(state.items.shown().next_back().expect("it is said").kind, Kind::Problem, "{wrong}");
    }
}

#[test]
fn arguments_are_edited_and_must_be_an_object() {
    let mut state = state();
    let payload = json!({"tool": "bash", "arguments": {"command": "ls"}});
    let question = |id: &str| Question::new(id, "approval", payload.clone());
    state.ask(vec![question("c1/approval"), question("c2/approval")]);
    assert_eq!(press(&mut state, KeyCode::Char('y')), None, "one is left");
    press(&mut state, KeyCode::Char('e'));
    let Mode::Ask(asking) = &mut state.mode else { panic!("it asks") };
    asking.editor = Some(Input::of("[1]"));
    assert_eq!(press(&mut state, KeyCode::Enter), None);
    let Mode::Ask(asking) = &mut state.mode else { panic!("it asks still") };
    assert!(asking.problem.is_some());
    asking.editor = Some(Input::of("{\"command\": \"ls -l\"}"));
    let Some(Action::Answer(answers)) = press(&mut state, KeyCode::Enter) else { panic!("all is answered") };
    let values: Vec<_> = answers.iter().map(|(id, answer)| (id.as_str(), answer.value.clone())).collect();
    let edited = json!({"decision": "edit", "arguments": {"command": "ls -l"}});
    assert_eq!(values, [("c1/approval", json!({"decision": "approve"})), ("c2/approval", edited)]);
}

#[test]
fn questions_of_the_model_are_answered_by_number_or_in_words() {
    let mut state = state();
    let payload = json!({"questions": [
        {"question": "Which?", "options": ["SQLite", "PostgreSQL"]},
        {"question": "Parts?", "options": ["schema", "data"], "multiple": true},
    ]});
    state.ask(vec![Question::new("q", "ask_user", payload)]);
    assert_eq!(say(&mut state, "2"), None);
    let Some(Action::Answer(answers)) = say(&mut state, "1, all of it") else { panic!("all is answered") };
    assert_eq!(answers[0].1.value, json!(["PostgreSQL", ["schema", "all of it"]]));
}

#[test]
fn however_much_a_tool_writes_what_is_kept_is_bounded_and_has_both_ends() {
    let mut items = Items::default();
    for n in 0..200 {
        items.call("run", &n.to_string(), "cat", "{}", 0);
        items.output("run", &n.to_string(), &format!("first {} last é", "x".repeat(1 << 20)), true);
    }
    let bytes: usize = items.shown().map(|item| item.text.bytes()).sum();
    assert!(bytes <= 9 << 20, "{bytes}");
    let text = items.shown().next_back().expect("the newest is there").text.text().into_owned();
    assert!(text.starts_with("first xx") && text.ends_with("last é") && text.contains("bytes are not shown"));
    let mut streamed = items::Kept::default();
    (0..300_000).for_each(|n| streamed.push(&format!("é{n} ")));
    assert!(streamed.bytes() < 300 << 10 && streamed.text().ends_with("é299999 "));
}

#[test]
fn what_a_model_says_again_takes_the_place_of_what_broke_off() {
    let mut items = Items::default();
    items.stream(Kind::Thought, "hm");
    items.stream(Kind::Answer, "It is");
    items.stream(Kind::Answer, " nine");
    items.drop_stream();
    items.stream(Kind::Answer, "It is ten");
    items.answered("It is ten.");
    let shown: Vec<_> = items.shown().map(|item| item.text.text().into_owned()).collect();
    assert_eq!(shown, ["hm", "It is ten."]);
}

#[test]
fn a_sub_agent_folds_with_all_that_it_did() {
    let mut items = Items::default();
    items.agent("top", "below", "helper", 0);
    items.call("below", "c1", "read_file", "{}", 1);
    items.agent("below", "lowest", "scout", 1);
    items.said("lowest", 2, "Found.");
    items.call("top", "c2", "grep", "{}", 0);
    let shown = |items: &Items| items.shown().count();
    assert_eq!(shown(&items), 5);
    let first = items.shown().next().map(|item| item.id);
    items.focus = first;
    items.fold();
    assert_eq!(shown(&items), 2, "the sub-agent's line, and what is not its own");
    items.fold();
    assert_eq!(shown(&items), 5);
}
