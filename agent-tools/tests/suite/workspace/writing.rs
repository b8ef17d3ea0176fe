//! `write_file` and `edit_file`.

use std::{fs, os::unix::fs::PermissionsExt};

use agent_core::{Resources, Tool, ToolRequest, tool::Reconciled};
use agent_tools::ArgumentSchema;
use serde_json::json;

use super::{
    fixture,
    support::{request, run},
};

#[tokio::test]
async fn writing_makes_folders_and_replaces_whole_files() {
    let fixture = fixture();
    let write =
        async |content: &str| fixture.call("write_file", json!({"path": "a/b/c.txt", "content": content})).await;
    assert_eq!(write("one\n").await, "created a/b/c.txt (1 line)");
    assert_eq!(write("1\n2\n").await, "replaced a/b/c.txt (2 lines)");
    assert_eq!(fixture.content("a/b/c.txt"), "1\n2\n");
    assert_eq!(fs::read_dir(fixture.root().join("a/b")).expect("reads").count(), 1, "no draft is left");
    for folder in ["a", "a/b/", "."] {
        let refused = fixture.call("write_file", json!({"path": folder, "content": ""})).await;
        assert!(refused.contains("cannot be used: it is a directory"), "{refused}");
    }
}

#[tokio::test]
async fn a_replaced_file_keeps_its_permissions_and_a_read_only_one_its_content() {
    let fixture = fixture().with("script", "old").with("fixed", "old");
    for (path, mode) in [("script", 0o750), ("fixed", 0o444)] {
        fs::set_permissions(fixture.root().join(path), fs::Permissions::from_mode(mode)).expect("sets");
    }
    for path in ["script", "fixed"] {
        fixture.call("read_file", json!({"path": path})).await;
    }
    fixture.next_step();
    fixture.call("write_file", json!({"path": "script", "content": "new"})).await;
    let mode = fs::metadata(fixture.root().join("script")).expect("reads").permissions().mode();
    assert_eq!((fixture.content("script").as_str(), mode & 0o777), ("new", 0o750));
    let refused = fixture.call("write_file", json!({"path": "fixed", "content": "new"})).await;
    assert_eq!(refused, "ERROR 'fixed' cannot be used: it is marked as read-only");
    assert_eq!(fixture.content("fixed"), "old");
}

#[tokio::test]
async fn a_file_of_which_bytes_were_not_shown_is_not_replaced_or_removed() {
    let fixture = fixture().with("bundle.js", "a".repeat(2_001)).with("latin1", b"caf\xe9\n");
    for path in ["bundle.js", "latin1"] {
        for tool in ["read_file", "read_many_files"] {
            fixture.call(tool, json!({"path": path, "paths": [path]})).await;
        }
        fixture.next_step();
        let why = format!("'{path}' is there, and you have not read all of it");
        let replaced = fixture.call("write_file", json!({"path": path, "content": "new"})).await;
        assert!(replaced.contains(&why), "{replaced}");
        let patch = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch");
        let removed = fixture.call("apply_patch", json!({"input": patch})).await;
        assert!(removed.contains(&why), "{removed}");
    }
    fixture.call("read_file", json!({"path": "bundle.js", "start_byte": 1})).await;
    fixture.next_step();
    let replaced = fixture.call("write_file", json!({"path": "bundle.js", "content": "new"})).await;
    assert_eq!(replaced, "replaced bundle.js (1 line)", "it was shown as a whole");
}

#[tokio::test]
async fn the_names_that_models_know_are_taken_for_the_schemas_own() {
    let notebook = r#"{"cells": [{"cell_type": "raw", "id": "a", "metadata": {}, "source": ["1"]}], "nbformat": 4}"#;
    let fixture = fixture().with("f", "one two three").with("n.ipynb", notebook);
    for (tool, args) in [
        ("read_file", json!({"file_path": "f"})),
        ("read_file", json!({"file_path": "n.ipynb"})),
        ("edit_file", json!({"file_path": "f", "old_string": "one", "new_string": "1", "replace_all": false})),
        ("edit_file", json!({"path": "f", "old_str": "1", "new_str": "I"})),
        ("multi_edit", json!({"file_path": "f", "edits": [{"old_string": "two", "new_string": "II"}]})),
        (
            "edit_notebook",
            json!({"notebook_path": "n.ipynb", "cell_id": "a", "new_source": "2", "edit_mode": "replace"}),
        ),
        ("edit_notebook", json!({"file_path": "n.ipynb", "cell_number": 0, "new_source": "3"})),
        ("write_file", json!({"file_path": "new", "content": "x"})),
    ] {
        fixture.next_step();
        let (found, shown) = (fixture.tool(tool), args.to_string());
        let schema = ArgumentSchema::compile(&found.spec()).expect("compiles");
        let parsed = schema.parse_with(&shown, &found.options().aliases).value;
        let done = fixture.call(tool, parsed).await;
        assert!(!done.starts_with("ERROR"), "{tool} {shown}: {done}");
    }
    assert_eq!((fixture.content("f").as_str(), fixture.content("new").as_str()), ("I II three", "x"));
    assert!(fixture.content("n.ipynb").contains("\"3\""), "{}", fixture.content("n.ipynb"));
}

#[tokio::test]
async fn an_edit_must_be_unambiguous() {
    let fixture = fixture().with("f", "one\ntwo\none\n  three\n");
    let edit = async |old: &str, new: &str, all: bool| {
        fixture.call("edit_file", json!({"path": "f", "old_text": old, "new_text": new, "replace_all": all})).await
    };
    assert_eq!(
        edit("one", "1", false).await,
        "ERROR old_text is in 'f' 2 times, at lines 1, 3: add lines around the one that is meant, or set replace_all"
    );
    assert_eq!(edit("four", "4", false).await, "ERROR old_text is not in 'f': read the file again and copy it exactly");
    assert_eq!(
        edit("one\nthree", "x", false).await,
        "ERROR old_text is not in 'f': it is at line 3 with other white space; read the file again and copy it exactly"
    );
    assert_eq!(
        edit("    2| two", "x", false).await,
        "ERROR old_text is not in 'f': leave out the line numbers that read_file shows"
    );
    assert!(edit("", "x", false).await.starts_with("ERROR old_text is empty"));
    assert!(edit("two", "two", false).await.starts_with("ERROR old_text and new_text are the same"));
    assert_eq!(fixture.content("f"), "one\ntwo\none\n  three\n", "nothing was changed");
    assert_eq!(edit("two", "2", false).await, "edited f: 1 replacement at line 2");
    assert_eq!(edit("one", "1", true).await, "edited f: 2 replacements at line 1");
    assert_eq!(fixture.content("f"), "1\n2\n1\n  three\n");
}

#[tokio::test]
async fn of_many_matches_the_first_lines_are_named_and_the_others_counted() {
    let fixture = fixture().with("f", "ab\n".repeat(87_500));
    let refused = fixture.call("edit_file", json!({"path": "f", "old_text": "b", "new_text": "c"})).await;
    assert_eq!(
        refused,
        "ERROR old_text is in 'f' 87500 times, at lines 1, 2, 3, 4, 5 and 87495 more: add lines around the one that is meant, or set replace_all"
    );
}

#[tokio::test]
async fn an_edit_that_would_make_a_file_too_large_is_refused_before_its_text_is_made() {
    let fixture = fixture().with("f", "a".repeat(1 << 20));
    let edit = json!({"path": "f", "old_text": "a", "new_text": "b".repeat(1 << 20), "replace_all": true});
    let refused = fixture.call("edit_file", edit).await;
    assert_eq!(refused, "ERROR 'f' cannot be used: it has 1099511627776 bytes, more than the limit of 10485760");
    assert_eq!(fixture.content("f").len(), 1 << 20);
}

#[tokio::test]
async fn other_white_space_is_found_in_a_long_file_of_lines_that_are_all_alike() {
    let fixture = fixture().with("f", "  x\n".repeat(100_000) + "\ty\n");
    let old_text = "x\n".repeat(50_000) + "y\n";
    let refused = fixture.call("edit_file", json!({"path": "f", "old_text": old_text, "new_text": ""})).await;
    assert!(refused.contains("it is at line 50001 with other white space"), "{refused}");
}

#[tokio::test]
async fn an_edit_keeps_the_line_ends_of_the_file() {
    let fixture = fixture().with("f", "a\r\nb\r\nc\r\n");
    fixture.call("edit_file", json!({"path": "f", "old_text": "a\nb", "new_text": "x\ny\nz"})).await;
    assert_eq!(fixture.content("f"), "x\r\ny\r\nz\r\nc\r\n");
}

#[tokio::test]
async fn edits_of_one_file_at_once_do_not_undo_each_other() {
    let names: Vec<_> = (0..20).map(|n| format!("<{n}>")).collect();
    let fixture = fixture().with("f", names.join("\n"));
    let edits =
        names.iter().map(|name| fixture.call("edit_file", json!({"path": "f", "old_text": name, "new_text": ""})));
    futures::future::join_all(edits).await;
    assert_eq!(fixture.content("f").trim(), "");
}

#[tokio::test]
async fn what_became_of_an_edit_is_read_from_the_file() {
    let fixture = fixture().with("f", "old text");
    let (run, tool) = (run(Resources::default()), fixture.tool("edit_file"));
    let ask = async |old: &str, new: &str| {
        let req: ToolRequest = request(run.cx(), &tool, json!({"path": "f", "old_text": old, "new_text": new}));
        tool.reconcile(req).await.expect("can be read")
    };
    assert_eq!(ask("old", "new").await, Reconciled::DidNot);
    assert!(matches!(ask("gone", "old").await, Reconciled::Happened(_)));
    assert_eq!(ask("old", "older").await, Reconciled::DidNot);
    assert_eq!(ask("old", "").await, Reconciled::Unknown, "a deletion leaves nothing to look for");
    assert_eq!(ask("old", "old text").await, Reconciled::Unknown, "both are there");
    assert_eq!(ask("gone", "new").await, Reconciled::Unknown, "neither is there");
}
