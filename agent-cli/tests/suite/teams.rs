//! Teams' files on the command line, through the program itself.

use crate::support;

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use support::{agent, end};

const TEAM: &str = "
name: release
team:
  leader:
    name: lead
    model:
      name: offline:script
      options:
        turns:
          - text: I plan.
            calls:
              - spawn_teammate: {role_name: builder}
              - create_task: {title: Build it}
              - claim_task: {task_id: T-001, assignee_agent_id: builder-1}
          - The builder is at work.
          - calls: [{finish_team: {summary: It is built.}}]
  members:
    builder:
      name: builder
      description: builds
      model:
        name: offline:script
        options:
          turns:
            - calls:
                - update_task_status: {task_id: T-001, status: completed}
                - message: {to_agent_id: leader, content: T-001 is done.}
            - I am done.
  watchdog: {max_idle_turns: 1}
";

/// A team whose builder asks before it writes a file.
fn asking() -> String {
    let tools = "      tools: [{workspace: {root: .}}]\n      middleware: [{approval: {permissions: {default: allow, \
                 rules: [{policy: ask, tool: write_file}]}}}]\n      model:";
    let write = "            - calls: [{write_file: {path: out.txt, content: hi}}]\n            - calls:\n                - update";
    let text =
        TEAM.replacen("      description: builds\n      model:", &format!("      description: builds\n{tools}"), 1);
    text.replacen("            - calls:\n                - update", write, 1)
}

fn folder(team: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("team.yaml"), team).unwrap();
    dir
}

/// Talks with the team: writes these lines to its input.
fn chat(dir: &Path, args: &[&str], lines: &str) -> (i32, String, String) {
    let mut command: Command = agent(dir);
    let mut child = command
        .args(["chat", "team.yaml"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn a_team_is_run_with_its_result_on_standard_output_and_its_course_beside() {
    let dir = folder(TEAM);
    let (code, out, err) = end(&mut agent(dir.path()), &["run", "team.yaml", "-s", "r", "Build."]);
    assert_eq!((code, out.as_str()), (0, "It is built.\n"), "{err}");
    for told in
        ["[leader] I plan.", "[leader] builder-1 joined the team", "[builder-1] to leader: T-001 is done.", "completed"]
    {
        assert!(err.contains(told), "{told}: {err}");
    }
    let (code, out, err) = end(&mut agent(dir.path()), &["inspect", "r", "--file", "team.yaml"]);
    assert_eq!(code, 0, "{err}");
    for told in ["end       finished", "builder-1", "T-001", "completed", "run ended: finished"] {
        assert!(out.contains(told), "{told}: {out}");
    }
    let (code, out, _) = end(&mut agent(dir.path()), &["inspect", "r", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &shown["tasks"][0]["owner"], &shown["end"]), (0, &"builder-1".into(), &"finished".into()));
    let (code, _, err) = end(&mut agent(dir.path()), &["run", "team.yaml", "-s", "again", "Build."]);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = end(&mut agent(dir.path()), &["diff", "r", "again"]);
    assert!(code == 0 && out.contains("no difference") || code == 1 && out.contains("change "), "{out} {err}");
    let (code, out, _) = end(&mut agent(dir.path()), &["run", "--json", "team.yaml", "Build."]);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((code, &last["end"], &last["answer"]), (0, &"finished".into(), &"It is built.".into()), "{out}");
}

#[test]
fn a_question_of_a_member_suspends_the_run_until_it_is_answered_by_another_process() {
    let dir = folder(&asking());
    let (code, out, err) = end(&mut agent(dir.path()), &["run", "team.yaml", "-s", "r", "Build."]);
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    assert!(err.contains("builder-1 asks: write_file"), "{err}");
    assert!(!dir.path().join("out.txt").exists());
    let (code, out, _) = end(&mut agent(dir.path()), &["approve", "r", "--file", "team.yaml"]);
    assert!(code == 3 && out.contains("builder-1 asks: write_file"), "{out}");
    let (code, out, err) = end(&mut agent(dir.path()), &["approve", "r", "--file", "team.yaml", "--allow"]);
    assert_eq!((code, out.as_str()), (0, "It is built.\n"), "{err}");
    assert_eq!(fs::read_to_string(dir.path().join("out.txt")).unwrap(), "hi");
}

#[test]
fn in_a_chat_each_member_speaks_under_its_name_and_the_board_is_shown() {
    let dir = folder(TEAM);
    let (code, out, err) = chat(dir.path(), &["-s", "c"], "Build.\n");
    assert_eq!(code, 0, "{err}");
    for said in
        ["[leader] I plan.", "[leader] The builder is at work.", "[builder-1] I am done.", "[team] It is built."]
    {
        assert!(out.contains(said), "{said}: {out} {err}");
    }
    let (code, out, err) = chat(dir.path(), &["-s", "c"], "/board\n/members\n@nobody hi\n/what\n@builder hello\n");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("T-001  completed  builder-1"), "{out}");
    assert!(err.contains("there is no member 'nobody'; members: builder-1, leader"), "{err}");
    assert!(err.contains("unknown command '/what'"), "{err}");
    assert!(err.contains("the team run has ended"), "{err}");
}

#[test]
fn a_question_is_answered_in_the_chat_with_the_members_name() {
    let dir = folder(&asking());
    let (code, _, err) = chat(dir.path(), &["-s", "c"], "Build.\n");
    assert!(code == 0 && err.contains("builder-1 asks: write_file"), "{err}");
    let (code, out, err) = chat(dir.path(), &["-s", "c"], "/answer builder-1 perhaps\n/answer builder-1 yes\n");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("answer yes or no"), "{err}");
    assert!(out.contains("[team] It is built."), "{out} {err}");
}

#[test]
fn a_pattern_is_run_and_talked_with() {
    let one = "{name: one, model: {name: 'offline:script', options: {turns: [a draft, a second draft]}}}";
    let two = "{name: two, model: {name: 'offline:script', options: {turns: [a text, a second text]}}}";
    let dir = folder(&format!("name: post\nteam: {{sequence: [{one}, {two}]}}\n"));
    let (code, out, err) = end(&mut agent(dir.path()), &["run", "team.yaml", "Write."]);
    assert_eq!((code, out.as_str()), (0, "a text\n"), "{err}");
    let (code, out, err) = chat(dir.path(), &["-s", "c"], "Write.\n");
    assert!(code == 0 && out.contains("[1-one] a draft") && out.contains("[team] a text"), "{out} {err}");
}

#[test]
fn a_team_is_checked_and_what_is_wrong_is_told_with_its_place() {
    let dir = folder(TEAM);
    let (code, out, err) = end(&mut agent(dir.path()), &["doctor", "team.yaml"]);
    assert_eq!(code, 0, "{out} {err}");
    for told in ["team 'release'", "members of the roles builder", "tools of leader", "offline:script"] {
        assert!(out.contains(told), "{told}: {out}");
    }
    fs::write(dir.path().join("team.yaml"), TEAM.replace("  leader:", "  leadr:")).unwrap();
    for args in [&["run", "team.yaml", "Hi"][..], &["doctor", "team.yaml"]] {
        let (code, out, err) = end(&mut agent(dir.path()), args);
        let told = format!("{out}{err}");
        assert!(code != 0 && told.contains("team.yaml:4:3") && told.contains("did you mean 'leader'?"), "{told}");
    }
}

#[test]
fn commands_of_one_agent_refuse_a_team_and_say_what_to_do() {
    let dir = folder(TEAM);
    for args in [
        &["tools", "team.yaml"][..],
        &["mcp", "team.yaml"],
        &["fork", "r", "--step", "1", "--into", "f", "--file", "team.yaml"],
        &["run", "team.yaml", "--max-steps", "3", "Hi"],
        &["run", "team.yaml", "--system", "x", "Hi"],
    ] {
        let (code, out, err) = end(&mut agent(dir.path()), args);
        assert_eq!(code, 2, "{args:?}: {out} {err}");
        let says = err.contains("describes a team") || err.contains("no store") || err.contains("no session");
        assert!(says, "{args:?}: {err}");
    }
}
