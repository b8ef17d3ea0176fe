//! Decisions of permission rules.

use std::sync::{Arc, Mutex};

use agent_core::{Event, EventKind, GlobalStorage, RunIds};
use agent_middleware::{
    Approval, Permissions,
    permissions::{Policy, Rule, RuleFile, RuleStore},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Doubler,
    common::{self, call, root, run_of},
    f,
};

fn policy(permissions: &Permissions, tool: &str, args: &Value) -> Policy {
    permissions.decide(tool, args).policy
}

#[test]
fn a_denial_wins_over_a_question_and_a_question_over_leave_however_wide_they_are() {
    let permissions = Permissions::new()
        .otherwise(Policy::Allow)
        .rule(Rule::allow("**"))
        .rule(Rule::ask("write_*"))
        .rule(Rule::deny("write_disk"));
    let none = json!({});
    assert_eq!(policy(&permissions, "write_disk", &none), Policy::Deny);
    assert_eq!(policy(&permissions, "write_file", &none), Policy::Ask);
    assert_eq!(policy(&permissions, "read_file", &none), Policy::Allow);
    assert_eq!(policy(&Permissions::new(), "read_file", &none), Policy::Ask, "what no rule fits is asked about");
}

#[test]
fn paths_are_judged_by_where_they_lead() {
    let permissions = Permissions::new()
        .root("/app")
        .rule(Rule::allow("read").path("path", "src/**").path("path", "/usr/share/**"))
        .rule(Rule::deny("read").path("path", "**/.env").path("path", "/etc/**"));
    for (path, wanted) in [
        ("src/a.rs", Policy::Allow),
        ("./src/../src//a.rs", Policy::Allow),
        ("/app/src/a.rs", Policy::Allow),
        ("/usr/share/../share/doc", Policy::Allow),
        ("src/../a.rs", Policy::Ask),
        ("/srcs/a.rs", Policy::Ask),
        ("src/../../etc/passwd", Policy::Deny),
        ("/app/../etc/passwd", Policy::Deny),
        ("src/x/../.env", Policy::Deny),
        ("/app/.env", Policy::Deny),
        ("~/x", Policy::Ask),
        ("", Policy::Ask),
        ("src/$HOME", Policy::Ask),
    ] {
        assert_eq!(policy(&permissions, "read", &json!({"path": path})), wanted, "{path}");
    }
    for (paths, wanted) in [
        (json!(["src/a", "src/b"]), Policy::Allow),
        (json!(["src/a", "b"]), Policy::Ask),
        (json!(["src/a", "/etc/b"]), Policy::Deny),
        (json!([]), Policy::Ask),
        (json!(7), Policy::Ask),
        (json!(null), Policy::Ask),
    ] {
        assert_eq!(policy(&permissions, "read", &json!({"path": paths})), wanted, "{paths}");
    }
    assert_eq!(policy(&permissions, "read", &json!({})), Policy::Ask, "no path at all");
}

#[test]
fn texts_and_whole_arguments_are_compared() {
    let permissions = Permissions::new()
        .rule(Rule::allow("fetch").text("url", "https://docs.example.org/*"))
        .rule(Rule::allow("pay").text("amount", "5").text("to", "Ada"))
        .rule(Rule::allow("f").with_arguments(json!({"b": 1, "a": 2})));
    for (tool, args, wanted) in [
        ("fetch", json!({"url": "https://docs.example.org/serde"}), Policy::Allow),
        ("fetch", json!({"url": "https://docs.example.org.evil.test/"}), Policy::Ask),
        ("fetch", json!({}), Policy::Ask),
        ("pay", json!({"amount": 5, "to": "Ada"}), Policy::Allow),
        ("pay", json!({"amount": 50, "to": "Ada"}), Policy::Ask),
        ("f", json!({"a": 2, "b": 1}), Policy::Allow),
        ("f", json!({"a": 2, "b": 1, "c": 0}), Policy::Ask),
    ] {
        assert_eq!(policy(&permissions, tool, &args), wanted, "{tool} {args}");
    }
}

#[test]
fn permissions_go_through_json() {
    let permissions = Permissions::new().root("/app").rule(Rule::allow("sh").text("c", "ls").path("p", "a/**"));
    let json = serde_json::to_value(&permissions).expect("serialises");
    let rule = json!({"policy": "allow", "tool": "sh", "when": {"c": {"text": ["ls"]}, "p": {"path": ["a/**"]}}});
    assert_eq!(json, json!({"default": "ask", "root": "/app", "rules": [rule]}));
    assert_eq!(serde_json::from_value::<Permissions>(json).expect("parses"), permissions);
}

proptest! {
    #[test]
    fn no_rule_makes_a_path_that_leads_out_of_the_allowed_directory_run(
        parts in prop::collection::vec(prop::sample::select(vec!["src", "..", ".", "a", "", ".env", "etc"]), 0..8),
        absolute in any::<bool>(),
    ) {
        let path = format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"));
        let permissions = Permissions::new().root("/app").rule(Rule::allow("read").path("path", "src/**"));
        let mut at = if path.starts_with('/') { vec![] } else { vec!["app"] };
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(at.pop()),
                part => at.push(part),
            }
        }
        let inside = at.len() > 2 && at[..2] == ["app", "src"];
        let allowed = policy(&permissions, "read", &json!({"path": path})) == Policy::Allow;
        prop_assert_eq!(allowed, inside && !path.is_empty(), "{}", path);
    }
}

#[tokio::test]
async fn each_ruling_is_an_event_without_the_arguments_and_in_the_shadow_nothing_else_happens() {
    for (shadow, ran) in [(false, 0), (true, 2)] {
        let approval = Approval::new().deny("f").ask("g");
        let tool = Doubler::under(if shadow { approval.shadow() } else { approval });
        let (run, seen) = (root(|_| {}), Arc::new(Mutex::new(Vec::new())));
        let rulings = seen.clone();
        run.cx().attach(Arc::new(move |event: &Event| {
            if let EventKind::Custom { name, value } = &event.kind {
                assert_eq!(name, "approval");
                rulings.lock().expect("lock").push(value.clone());
            }
        }));
        let _ = tool.call(f(run.cx(), "c1")).await;
        let _ = tool.call(call(run.cx(), "c2", "g", json!({"x": 1}))).await;
        assert_eq!(tool.ran(), ran);
        assert_eq!(run.has_questions(), !shadow);
        let ruling = |id: &str, tool: &str, policy: &str, why: &str| json!({"call_id": id, "tool": tool, "policy": policy, "why": why, "shadow": shadow});
        let all = [ruling("c1", "f", "deny", "rule 1 says so"), ruling("c2", "g", "ask", "rule 2 says so")];
        assert_eq!(*seen.lock().expect("lock"), all);
    }
}

#[tokio::test]
async fn a_rule_file_keeps_rules_by_agent_and_says_so_if_it_is_none() {
    let path = std::env::temp_dir().join(format!("rules-{}.json", agent_core::run::new_id()));
    let (file, run) = (RuleFile::new(&path), root(|_| {}));
    assert!(file.load(run.cx()).await.expect("no file, no rules").is_empty());
    for _ in 0..2 {
        file.add(run.cx(), Rule::allow("f")).await.expect("keeps");
    }
    file.add(run.cx(), Rule::deny("g")).await.expect("keeps");
    let again = RuleFile::new(&path);
    assert_eq!(again.load(run.cx()).await.expect("reads"), [Rule::allow("f"), Rule::deny("g")]);
    let other = run_of(RunIds::root("other", "s"), GlobalStorage::default(), |_| {});
    assert!(again.load(other.cx()).await.expect("reads").is_empty());
    std::fs::write(&path, "{").expect("writes");
    let e = again.load(run.cx()).await.expect_err("no rules");
    assert!(e.message().contains("holds no rules"), "{e}");
    assert!(again.add(run.cx(), Rule::allow("f")).await.is_err(), "what is there is not overwritten");
    std::fs::remove_file(&path).expect("removes");
}

#[tokio::test]
async fn a_rule_file_keeps_the_rules_of_each_user_apart() {
    let path = std::env::temp_dir().join(format!("rules-{}.json", agent_core::run::new_id()));
    let file = RuleFile::new(&path);
    let of_user = |user: Option<&str>| {
        let mut ids = RunIds::root("main", "s");
        ids.user = user.map(Into::into);
        run_of(ids, GlobalStorage::default(), |_| {})
    };
    file.add(of_user(Some("ada")).cx(), Rule::allow("f")).await.expect("keeps");
    file.add(of_user(None).cx(), Rule::allow("g")).await.expect("keeps");
    for (user, rules) in [
        (Some("ada"), vec![Rule::allow("f")]),
        (Some("bob"), vec![]),
        (Some(""), vec![]),
        (Some("main"), vec![]),
        (None, vec![Rule::allow("g")]),
    ] {
        assert_eq!(file.load(of_user(user).cx()).await.expect("reads"), rules, "{user:?}");
    }
    std::fs::remove_file(&path).expect("removes");
}

/// Uses a named pipe as the file: opening it blocks until somebody writes.
#[cfg(unix)]
#[test]
fn a_rule_file_that_is_slow_to_read_holds_up_nobody_else() {
    let path = std::env::temp_dir().join(format!("rules-{}.pipe", agent_core::run::new_id()));
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("runs").success());
    let (done, is_done) = std::sync::mpsc::channel();
    let pipe = path.clone();
    std::thread::spawn(move || {
        common::block_on(async {
            let (file, run) = (RuleFile::new(&pipe), root(|_| {}));
            let write = async {
                let written = tokio::task::spawn_blocking(move || std::fs::write(pipe, r#"{"agent": []}"#));
                written.await.expect("ends").expect("writes");
            };
            // The file is polled first.
            let (rules, ()) = tokio::join!(biased; file.load(run.cx()), write);
            done.send(rules.is_ok()).expect("is waited for");
        });
    });
    let read = is_done.recv_timeout(std::time::Duration::from_secs(10));
    std::fs::remove_file(&path).expect("removes");
    assert_eq!(read, Ok(true));
}
