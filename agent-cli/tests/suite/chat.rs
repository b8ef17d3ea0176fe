//! `agent chat` in a real terminal, which tmux is. Skipped, and said so, where there is no tmux.

use crate::support;

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use support::{Gate, Model, Reply};

/// Time until something must be visible.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal with the program in it.
struct Terminal {
    socket: String,
    dir: tempfile::TempDir,
}

impl Terminal {
    /// None where there is no tmux.
    fn begin(model: &Model, arguments: &str) -> Option<Self> {
        let terminal = Self::with(model, &format!("chat {arguments}"))?;
        terminal.wait(":scripted");
        Some(terminal)
    }

    /// A terminal with any command of the program.
    fn with(model: &Model, arguments: &str) -> Option<Self> {
        Self::among(&[], model, arguments)
    }

    /// The same, in a folder with these files.
    fn among(files: &[(&str, &str)], model: &Model, arguments: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("skipped: no tmux");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let socket = dir.path().join("tmux").to_str().unwrap().to_owned();
        let terminal = Self { socket, dir };
        let (bin, url) = (env!("CARGO_BIN_EXE_agent"), &model.url);
        let line = format!(
            "env OPENAI_BASE_URL={url} OPENAI_API_KEY=k AGENT_MODEL=openai:scripted@chat AGENT_STORE=s.db {bin} {arguments}; echo ended $?; sleep 60"
        );
        let home = terminal.dir().to_str().unwrap();
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            "-c",
            home,
            "sh",
            "-c",
            &line,
        ]);
        Some(terminal)
    }

    fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output =
            Command::new("tmux").args(["-S", &self.socket]).args(args).env("LC_ALL", "C.UTF-8").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn say(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.press("Enter");
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Waits until the text is on the screen.
    fn wait(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(began.elapsed() < PATIENCE, "{what:?} was not seen:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output());
    }
}

#[test]
fn a_conversation_is_held_and_found_again() {
    let model = Model::new([Reply::Text("They **hum**.\n\n- all day"), Reply::Text("At night too.")]);
    let Some(terminal) = Terminal::begin(&model, "--session garden") else { return };
    terminal.say("What do bees do?");
    let screen = terminal.wait("• all day");
    assert!(screen.contains("› What do bees do?") && screen.contains("They hum."), "{screen}");
    terminal.press("C-r");
    terminal.tmux(&["send-keys", "-l", "BEES"]);
    terminal.wait("search: BEES");
    terminal.press("Enter");
    terminal.wait("› What do bees do?");
    terminal.press("Enter");
    terminal.wait("At night too.");
    terminal.say("/undo");
    terminal.until("taken back", |screen| screen.contains("Taken back.") && !screen.contains("At night too."));
    terminal.press("C-u");
    terminal.say("/quit");
    let screen = terminal.wait("ended 0");
    assert!(screen.contains("agent chat --session garden"), "{screen}");
}

#[test]
fn a_call_is_approved_with_other_arguments_and_its_output_unfolds() {
    let call = Reply::Call("write_file", json!({"path": "new.md", "content": "theirs"}));
    let model = Model::new([call, Reply::Text("It is written.")]);
    let Some(terminal) = Terminal::begin(&model, "--dir .") else { return };
    terminal.say("Write.");
    terminal.wait("[e]dit");
    terminal.press("e");
    terminal.wait("arguments:");
    for _ in 0..60 {
        terminal.press("BSpace");
    }
    terminal.say(r#"{"path": "new.md", "content": "mine"}"#);
    terminal.wait("It is written.");
    assert_eq!(fs::read_to_string(terminal.dir().join("new.md")).unwrap(), "mine");
    terminal.press("C-o");
    terminal.wait("\"content\": \"theirs\"");
}

#[test]
fn another_model_may_go_on_with_a_question_and_files_stay_with_their_conversation() {
    let call = Reply::Call("write_file", json!({"path": "new.md", "content": "theirs"}));
    let model = Model::new([call, Reply::Text("It is written."), Reply::Text("Nothing else.")]);
    let Some(terminal) = Terminal::begin(&model, "--dir .") else { return };
    fs::write(terminal.dir().join("bees.txt"), "Bees hum.").unwrap();
    terminal.say("Write.");
    terminal.wait("[e]dit");
    terminal.press("Escape");
    terminal.wait("/resume asks again");
    terminal.say("/model openai:another@chat");
    terminal.wait(":another");
    terminal.say("/resume");
    terminal.wait("[e]dit");
    terminal.press("y");
    terminal.wait("It is written.");
    terminal.say("/attach bees.txt");
    terminal.wait("goes along");
    terminal.say("/new");
    terminal.until("an empty screen", |screen| !screen.contains("goes along"));
    terminal.say("Anything?");
    terminal.wait("Nothing else.");
    assert!(!model.last().contains("Bees hum."), "{}", model.last());
}

#[test]
fn a_run_is_steered_interrupted_and_gone_on_with() {
    let (gate, never) = (Gate::default(), Gate::default());
    let model = Model::new([
        Reply::Held("First part.", gate.clone(), " Second part."),
        Reply::Held("Steered.", never, ""),
        Reply::Text("Gone on."),
    ]);
    let Some(terminal) = Terminal::begin(&model, "") else { return };
    terminal.say("Begin.");
    terminal.wait("First part.");
    terminal.say("In short, please.");
    terminal.wait("› In short, please.");
    gate.open();
    terminal.wait("Steered.");
    assert!(model.last().contains("In short, please."), "{}", model.last());
    terminal.press("Escape");
    terminal.wait("Interrupted.");
    terminal.say("/resume");
    terminal.wait("Gone on.");
}

#[test]
fn a_narrow_screen_and_one_that_changes_show_all_the_same() {
    let model = Model::new([Reply::Text("One two three four five six seven eight nine ten eleven twelve thirteen.")]);
    let Some(terminal) = Terminal::begin(&model, "") else { return };
    terminal.say("Count.");
    terminal.wait("eleven twelve thirteen.");
    terminal.tmux(&["resize-window", "-x", "40", "-y", "12"]);
    let screen = terminal.until("broken lines", |screen| {
        screen.lines().any(|line| line.trim_end() == "nine ten eleven twelve thirteen.")
    });
    assert!(screen.contains("thirteen."), "{screen}");
    terminal.say("/help");
    terminal.wait("Ctrl-O");
    terminal.press("PPage");
    terminal.wait("scrolled up");
}

/// A server of tools with one that gives ten megabytes.
const FLOOD: &str = r#"
import json, sys
tool = {"name": "flood", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
for line in sys.stdin:
    call = json.loads(line)
    if "id" not in call:
        continue
    if call["method"] == "initialize":
        known = {"name": "big", "version": "1"}
        result = {"protocolVersion": call["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": known}
    elif call["method"] == "tools/list":
        result = {"tools": [tool]}
    elif call["method"] == "tools/call":
        text = "a line of a large output\n" * 400000 + "its end"
        result = {"content": [{"type": "text", "text": text}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
"#;

const BIG: &str = "name: big
model: openai:scripted@chat
max_tool_output: 12000000
tools:
  - mcp: {name: big, command: [python3, big.py], pass: [PATH], max_result: 12000000}
";

#[test]
fn no_key_is_lost_while_a_flood_of_pieces_and_megabytes_of_output_come() {
    let model = Model::new([Reply::Call("big_flood", json!({})), Reply::Flood(20_000, "flood-is-over")]);
    let files = [("big.yaml", BIG), ("big.py", FLOOD)];
    let Some(terminal) = Terminal::among(&files, &model, "chat big.yaml") else { return };
    terminal.wait(":scripted");
    terminal.say("Read all of it.");
    terminal.wait("piece");
    let typed: String = ('a'..='z').chain('A'..='Z').collect();
    for letter in typed.chars() {
        terminal.tmux(&["send-keys", "-l", &letter.to_string()]);
    }
    terminal.wait(&format!("› {typed}"));
    terminal.wait("flood-is-over");
    assert!(model.last().len() > 10_000_000, "the model was told all of it");
    terminal.press("M-Up");
    terminal.press("C-o");
    terminal.wait("│ a line of a large output");
}

#[test]
fn a_run_asks_at_the_terminal_and_what_is_refused_is_not_done() {
    let call = |path: &str| Reply::Call("write_file", json!({"path": path, "content": "x"}));
    let model = Model::new([call("a.md"), call("b.md"), Reply::Text("One of two.")]);
    let Some(terminal) = Terminal::with(&model, "run --dir . 'Write twice.'") else { return };
    terminal.wait("[e]dit:");
    terminal.say("maybe");
    terminal.wait("That is no answer.");
    terminal.say("y");
    terminal.until("the second question", |screen| screen.matches("[e]dit:").count() == 3);
    terminal.say("n not that one");
    let screen = terminal.wait("ended 0");
    assert!(screen.contains("One of two."), "{screen}");
    assert!(terminal.dir().join("a.md").exists() && !terminal.dir().join("b.md").exists());
    assert!(model.last().contains("not that one"));
}

#[test]
fn an_image_goes_along_and_is_drawn_and_none_is_where_there_are_no_colours() {
    let model = Model::new([Reply::Text("A square.")]);
    let Some(terminal) = Terminal::begin(&model, "") else { return };
    fs::write(terminal.dir().join("a square.png"), STANDARD.decode(SQUARE).unwrap()).unwrap();
    terminal.say("/attach a square.png");
    let screen = terminal.wait("▣ a square.png, 2 x 2");
    assert!(screen.contains("▀▀"), "{screen}");
    terminal.say("What is this?");
    terminal.wait("A square.");
    assert!(model.last().contains("data:image/png;base64,"), "{}", model.last());
    terminal.say("/theme none");
    terminal.until("no image", |screen| screen.contains("▣ a square.png") && !screen.contains('▀'));
    terminal.say("/attach none.png");
    terminal.wait("! none.png: ");
}

/// Two by two points.
const SQUARE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4zwAE/xkgFAAb8gP91pbyKwAAAABJRU5ErkJggg==";

/// The pictures of the guide are what the program shows: `AGENT_SCREENSHOTS=1` makes them anew.
#[test]
fn the_pictures_of_the_guide_are_screens_of_this_program() {
    let read = Reply::Call("read_file", json!({"path": "bees.md"}));
    let write = Reply::Call("write_file", json!({"path": "summary.md", "content": "Bees hum all day."}));
    let said =
        "They **hum**, says `bees.md`:\n\n- all day, while they fly\n- at night, to air the hive\n\nI wrote that down.";
    let model = Model::new([read, write, Reply::Text(said)]);
    let Some(terminal) = Terminal::begin(&model, "--dir . --session garden") else { return };
    fs::write(terminal.dir().join("bees.md"), "Bees hum all day.\n").unwrap();
    terminal.tmux(&["resize-window", "-x", "84", "-y", "22"]);
    terminal.say("What do bees do? Write it down.");
    terminal.wait("[e]dit");
    let asks = terminal.tmux(&["capture-pane", "-p", "-e"]);
    terminal.press("y");
    terminal.wait("I wrote that down.");
    terminal.press("C-o");
    terminal.wait("\"path\": \"summary.md\"");
    terminal.until("nothing under way", |screen| !screen.contains("Esc interrupts"));
    let ended = terminal.tmux(&["capture-pane", "-p", "-e"]);
    for (name, screen) in [("chat-asks", asks), ("chat", ended)] {
        // Where the model is, is another place each time.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/guide/{name}.svg"));
        let picture = support::svg::picture(&screen, 84);
        if std::env::var_os("AGENT_SCREENSHOTS").is_some() {
            fs::write(&file, picture).unwrap();
        } else {
            let known = fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(words(&known), words(&picture), "{name}.svg: make it anew with AGENT_SCREENSHOTS=1");
        }
    }
}

/// Text of the screen, without the parts that change during a run.
fn words(picture: &str) -> Vec<String> {
    let texts = picture.lines().filter_map(|line| Some(line.split_once("\">")?.1.split_once("</text>")?.0));
    texts.filter(|text| !text.contains("Esc interrupts")).map(|text| text.trim().to_owned()).collect()
}
