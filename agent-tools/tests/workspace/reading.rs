//! `read_file`.

use serde_json::{Value, json};

use crate::fixture;

#[tokio::test]
async fn lines_are_numbered_and_ranges_are_exact() {
    let fixture =
        fixture().with("ten", (1..=10).map(|n| format!("line {n}\r\n")).collect::<String>()).with("empty", "");
    let read = async |start: Value, end: Value| {
        fixture.call("read_file", json!({"path": "./ten", "start_line": start, "end_line": end})).await
    };
    assert_eq!(read(json!(9), json!(null)).await, "ten (lines 9-10 of 10)\n    9| line 9\n   10| line 10");
    assert_eq!(read(json!(null), json!(1)).await, "ten (lines 1-1 of 10)\n    1| line 1");
    assert_eq!(read(json!(3), json!(3)).await, "ten (lines 3-3 of 10)\n    3| line 3");
    assert_eq!(read(json!(10), json!(99)).await, "ten (lines 10-10 of 10)\n   10| line 10");
    assert_eq!(read(json!(11), json!(null)).await, "ERROR 'ten' has 10 lines: start_line 11 is after the last");
    assert_eq!(read(json!(5), json!(4)).await, "ERROR end_line 4 is before start_line 5");
    assert!(read(json!(0), json!(null)).await.contains("'start_line' must be at least 1, got 0"));
    assert_eq!(fixture.call("read_file", json!({"path": "empty"})).await, "empty (empty)");
}

#[tokio::test]
async fn a_long_file_is_cut_and_says_how_to_go_on() {
    let fixture = fixture().with("long", "0123456789\n".repeat(1_000)).limited(|w| w.max_output_bytes(1_000));
    let read = fixture.call("read_file", json!({"path": "long"})).await;
    assert!(read.starts_with("long (lines 1-56 of 1000)\n"), "{read}");
    assert!(read.ends_with("\n[cut: go on with start_line = 57]"), "{read}");
    let wide = fixture.with("wide", "é".repeat(5_000));
    let read = wide.call("read_file", json!({"path": "wide"})).await;
    assert!(read.ends_with("é [cut: the line has 10000 bytes]"), "{read}");
}

#[tokio::test]
async fn what_is_too_big_or_not_text_is_refused() {
    let fixture = fixture().with("big", [b'a'; 101]).with("binary", b"a\0b").limited(|w| w.max_file_bytes(100));
    let read = async |path: &str| fixture.call("read_file", json!({"path": path})).await;
    assert_eq!(read("big").await, "ERROR 'big' cannot be used: it has 101 bytes, more than the limit of 100");
    assert_eq!(read("binary").await, "ERROR 'binary' is not text: it is a binary file of 3 bytes");
    assert_eq!(read("").await, "ERROR '.' cannot be used: it is a directory: use list_files");
    let written = fixture.call("write_file", json!({"path": "new", "content": "a".repeat(101)})).await;
    assert_eq!(written, "ERROR 'new' cannot be used: it has 101 bytes, more than the limit of 100");
}

#[tokio::test]
async fn what_is_almost_utf8_is_shown_with_a_note() {
    let fixture = fixture().with("latin1", b"caf\xe9\n");
    let read = fixture.call("read_file", json!({"path": "latin1"})).await;
    assert!(read.contains("    1| caf\u{fffd}\n[not all of it is UTF-8"), "{read}");
    let edited = fixture.call("edit_file", json!({"path": "latin1", "old_text": "caf", "new_text": "x"})).await;
    assert_eq!(edited, "ERROR 'latin1' is not UTF-8 text: it cannot be edited");
}

#[tokio::test]
async fn a_path_that_is_not_there_is_told_with_the_nearest_ones() {
    let fixture = fixture().with("src/main.rs", "").with("src/lib.rs", "").with("docs/guide.md", "");
    let read = async |path: &str| fixture.call("read_file", json!({"path": path})).await;
    assert_eq!(read("src/mian.rs").await, "ERROR 'src/mian.rs' does not exist; did you mean src/main.rs?");
    assert_eq!(read("Guide.md").await, "ERROR 'Guide.md' does not exist; did you mean docs/guide.md?");
    assert_eq!(read("zzzzzz").await, "ERROR 'zzzzzz' does not exist");
    let listed = fixture.call("list_files", json!({"path": "scr"})).await;
    assert_eq!(listed, "ERROR 'scr' does not exist");
}
