//! `apply_patch` and `multi_edit`, and the contents that agents know.

use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

use agent_core::{
    Tool,
    engine::{RunDriver, RunParts},
    run::RunIds,
    tool::Reconciled,
};
use serde_json::{Value, json};

use super::{Fixture, fixture, support::request};

fn patch(body: &str) -> Value {
    json!({"input": format!("*** Begin Patch\n{body}\n*** End Patch")})
}

#[tokio::test]
async fn a_patch_changes_adds_moves_and_removes_files() {
    let fixture = fixture().with("a.rs", "fn a() {\n    1\n}\n").with("old/b", "x\ny\n").with("c", "gone");
    fixture.call("read_file", json!({"path": "c"})).await;
    fixture.next_step();
    fs::set_permissions(fixture.root().join("old/b"), fs::Permissions::from_mode(0o750)).expect("sets");
    let done = fixture
        .call(
            "apply_patch",
            patch(
                "*** Update File: a.rs\n@@ fn a() {\n-    1\n+    2\n*** Update File: old/b\n*** Move to: new/b\n x\n-y\n+z\n*** Add File: d/e\n+one\n+\n+two\n*** Delete File: c",
            ),
        )
        .await;
    assert_eq!(done, "changed a.rs at line 2\nmoved old/b to new/b at line 1\ncreated d/e\nremoved c");
    assert_eq!(fixture.content("a.rs"), "fn a() {\n    2\n}\n");
    assert_eq!(fixture.content("new/b"), "x\nz\n");
    let mode = fs::metadata(fixture.root().join("new/b")).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o750, "a moved file keeps its permissions");
    assert_eq!(fixture.content("d/e"), "one\n\ntwo\n");
    assert!(!fixture.root().join("old/b").exists() && !fixture.root().join("c").exists());
}

#[tokio::test]
async fn of_a_patch_that_does_not_fit_nothing_is_applied() {
    let fixture = fixture().with("a", "1\n").with("b", "2\n").with("fixed", "x\n");
    fs::set_permissions(fixture.root().join("fixed"), fs::Permissions::from_mode(0o444)).expect("sets");
    for (body, why) in [
        ("*** Update File: a\n-1\n+9\n*** Update File: b\n-3\n+9", "these lines are not in 'b'"),
        ("*** Update File: a\n-1\n+9\n*** Update File: nowhere\n-3", "'nowhere' does not exist"),
        ("*** Update File: a\n-1\n+9\n*** Add File: b\n+x", "'b' is there already"),
        ("*** Update File: a\n-1\n+9\n*** Update File: ../secret\n-SECRET", "outside the workspace"),
        ("*** Update File: a\n-1\n+9\n*** Delete File: nowhere", "'nowhere' does not exist"),
        ("*** Update File: a\n-1\n+9\n*** Delete File: b", "'b' is there, and you have not read all of it"),
        ("*** Update File: a\n-1\n+9\n*** Add File: ../new\n+x", "outside the workspace"),
        ("*** Update File: a\n-1\n+9\n*** Update File: a\n-1\n+8", "these lines are not in 'a'"),
        ("*** Add File: c\n+1\n*** Update File: a\n*** Move to: c\n-1\n+9", "'c' is there already"),
        (
            "*** Update File: a\n-1\n+9\n*** Update File: fixed\n-x\n+y",
            "'fixed' cannot be used: it is marked as read-only",
        ),
        ("*** Update File: a\n*** Move to: b\n-1\n+9", "'b' is there already"),
        ("*** Update File: a", "changes nothing"),
        ("*** Update File: a\n1\n+9", "begin with ' ', '-' or '+'"),
        ("*** Add File: n\nx", "begin with '+'"),
        ("*** Change File: a\n-1", "stands where there must be"),
        ("*** Update File:\n-1", "has no path"),
        ("", "changes no file"),
    ] {
        let refused = fixture.call("apply_patch", patch(body)).await;
        assert!(refused.starts_with("ERROR ") && refused.contains(why), "{body}: {refused}");
        assert_eq!((fixture.content("a").as_str(), fixture.content("b").as_str()), ("1\n", "2\n"), "{body}");
    }
    for broken in ["", "*** Update File: a\n-1", "*** Begin Patch\n*** Update File: a\n-1"] {
        let refused = fixture.call("apply_patch", json!({"input": broken})).await;
        assert!(refused.contains("from '*** Begin Patch' to '*** End Patch'"), "{broken}: {refused}");
    }
}

#[tokio::test]
async fn a_patch_in_a_fence_is_one() {
    let fixture = fixture().with("a", "1\n");
    let input = "```\n*** Begin Patch\r\n*** Update File: a\r\n-1\r\n+2\r\n*** End Patch\n```";
    assert_eq!(fixture.call("apply_patch", json!({"input": input})).await, "changed a at line 1");
    assert_eq!(fixture.content("a"), "2\n");
}

#[tokio::test]
async fn parts_of_one_file_and_several_patches_in_one_text_are_all_applied() {
    let fixture = fixture().with("a", "1\n2\n3\n");
    let twice = "*** Update File: a\n-1\n+one\n*** Update File: a\n-2\n+two\n*** End Patch\n\n*** Begin Patch\n*** Update File: a\n-3\n+three\n*** Add File: b\n+x\n\n*** Update File: b\n-x\n+y";
    let done = fixture.call("apply_patch", patch(twice)).await;
    assert_eq!(done, "changed a at line 1\nchanged a at line 2\nchanged a at line 3\ncreated b\nchanged b at line 1");
    assert_eq!((fixture.content("a").as_str(), fixture.content("b").as_str()), ("one\ntwo\nthree\n", "y\n"));
}

async fn became(fixture: &Fixture, tool: &str, args: Value) -> Reconciled {
    let tool = fixture.tool(tool);
    tool.reconcile(request(fixture.run.cx(), &tool, args)).await.expect("can be read")
}

#[tokio::test]
async fn what_became_of_a_patch_is_read_from_the_files() {
    let body = "*** Update File: a\n-1\n+2\n*** Add File: b\n+x\n*** Delete File: c";
    let fixture = fixture().with("a", "1\n").with("c", "3\n");
    assert_eq!(became(&fixture, "apply_patch", patch(body)).await, Reconciled::DidNot);
    fixture.call("read_file", json!({"path": "c"})).await;
    fixture.next_step();
    fixture.call("apply_patch", patch(body)).await;
    assert!(matches!(became(&fixture, "apply_patch", patch(body)).await, Reconciled::Happened(_)));
    let fixture = fixture.with("c", "3\n");
    assert_eq!(became(&fixture, "apply_patch", patch(body)).await, Reconciled::Unknown, "a part of it");
    // A line added beside an unchanged line could apparently be added again.
    let body = "*** Update File: a\n 1\n+new\n*** Update File: b\n-1\n+2";
    let fixture = fixture.with("a", "1\nnew\n").with("b", "1\n");
    assert_eq!(became(&fixture, "apply_patch", patch(body)).await, Reconciled::Unknown, "the first half");
    let body = "*** Update File: a\n-1\n+2\n*** Update File: b\n p\n-x";
    let fixture = fixture.with("a", "2\n").with("b", "p\nx\n");
    assert_eq!(became(&fixture, "apply_patch", patch(body)).await, Reconciled::Unknown, "the first half");
    let body = "*** Update File: a\n*** Move to: m\n-1\n+2";
    let fixture = fixture.with("a", "1\n").with("m", "2\n");
    assert_eq!(became(&fixture, "apply_patch", patch(body)).await, Reconciled::Unknown, "written and not removed");
}

#[tokio::test]
async fn several_edits_of_a_file_are_made_in_their_order_or_not_at_all() {
    let fixture = fixture().with("f", "one two\n");
    let edits = |edits: &[(&str, &str)]| {
        let edits: Vec<_> = edits.iter().map(|(old, new)| json!({"old_text": old, "new_text": new})).collect();
        json!({"path": "f", "edits": edits})
    };
    let refused = fixture.call("multi_edit", edits(&[("one", "1"), ("three", "3")])).await;
    assert_eq!(
        refused,
        "ERROR edit 2: old_text is not in 'f': read the file again and copy it exactly; nothing was changed"
    );
    assert_eq!(fixture.content("f"), "one two\n");
    let both = edits(&[("one", "three"), ("three two", "2")]);
    assert_eq!(fixture.call("multi_edit", both).await, "edited f: 2 replacements at line 1");
    assert_eq!(fixture.content("f"), "2\n");
    let fixture = fixture.with("f", "a b");
    let other = edits(&[("a", "x"), ("b", "y")]);
    assert_eq!(became(&fixture, "multi_edit", other.clone()).await, Reconciled::DidNot);
    fixture.call("multi_edit", other.clone()).await;
    assert!(matches!(became(&fixture, "multi_edit", other).await, Reconciled::Happened(_)));
}

#[tokio::test]
async fn a_file_is_not_replaced_by_who_was_not_shown_all_of_it() {
    let fixture = fixture().with("f", "theirs\nand more\n");
    let call = async |tool: &str, args: Value| fixture.call(tool, args).await;
    let write = async |content: &str| call("write_file", json!({"path": "./f", "content": content})).await;
    let unread = write("mine").await;
    assert!(unread.starts_with("ERROR 'f' is there, and you have not read all of it: read it"), "{unread}");
    call("read_file", json!({"path": "f", "end_line": 1})).await;
    fixture.next_step();
    assert_eq!(write("mine").await, unread, "a part is not all");
    call("edit_file", json!({"path": "f", "old_text": "theirs", "new_text": "their"})).await;
    assert_eq!(write("mine").await, unread, "an edit shows nothing");
    call("read_file", json!({"path": "f"})).await;
    let early = write("mine").await;
    assert!(early.starts_with("ERROR 'f' is only now being read"), "{early}");
    fixture.next_step();
    assert_eq!(write("mine").await, "replaced f (1 line)");
    assert_eq!(write("mine again").await, "replaced f (1 line)", "it knows what it wrote");
    call("edit_file", json!({"path": "f", "old_text": "again", "new_text": "still"})).await;
    assert_eq!(write("mine").await, "replaced f (1 line)", "and what it made of that");
    fs::write(fixture.root().join("f"), "theirs again").expect("writes");
    let changed = write("mine").await;
    assert!(changed.starts_with("ERROR 'f' has changed since you read it: read it again"), "{changed}");
    assert_eq!(fixture.content("f"), "theirs again");
    let edited = call("edit_file", json!({"path": "f", "old_text": "theirs", "new_text": "ours"})).await;
    assert_eq!(edited, "edited f: 1 replacement at line 1 [it had changed since you read it]");
    assert_eq!(write("mine").await, changed, "what else changed was not shown");
    assert_eq!(write("ours again").await, "replaced f (1 line)", "what is there already is no other's");
    assert_eq!(call("write_file", json!({"path": "new", "content": ""})).await, "created new (0 lines)");
}

#[tokio::test]
async fn what_one_session_has_read_no_other_has() {
    let fixture = fixture().with("f", "theirs");
    fixture.call("read_file", json!({"path": "f"})).await;
    fixture.next_step();
    let (emitter, log) = (fixture.run.engine().emitter().clone(), fixture.run.engine().log().clone());
    let other = RunDriver::new(RunParts::new(Arc::new(RunIds::root("other", "another session")), emitter, log));
    let other = Fixture { run: other, ..fixture };
    let refused = other.call("write_file", json!({"path": "f", "content": "mine"})).await;
    assert!(refused.contains("you have not read all of it"), "{refused}");
}

#[tokio::test]
async fn a_line_that_is_changed_keeps_the_ends_of_the_file() {
    let fixture = fixture().with("f", "a\r\nb\r\n");
    fixture.call("edit_file", json!({"path": "f", "old_text": "a", "new_text": "x\ny"})).await;
    assert_eq!(fixture.content("f"), "x\r\ny\r\nb\r\n");
}
