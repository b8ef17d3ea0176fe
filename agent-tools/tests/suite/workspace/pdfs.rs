//! `read_file` on PDFs.

use serde_json::{Value, json};

use super::{document::pdf, fixture};

#[tokio::test]
async fn the_pages_of_a_pdf_are_shown_as_they_are_asked_for() {
    let fixture = fixture().with("bees.pdf", pdf(&["One", "Two", "Three"])).with("text", "no pdf");
    let read = async |pages: Value| fixture.call("read_file", json!({"path": "bees.pdf", "pages": pages})).await;
    let head = |pages: &str| format!("bees.pdf (pages {pages} of 3)\nTitle: A paper\n\n");
    let (one, two, three) = ("[page 1]\nOne", "[page 2]\nTwo", "[page 3]\nThree");
    assert_eq!(read(json!(null)).await, format!("{}{one}\n\n{two}\n\n{three}", head("1-3")));
    assert_eq!(read(json!("2")).await, format!("{}{two}", head("2-2")));
    assert_eq!(read(json!("1-2")).await, format!("{}{one}\n\n{two}", head("1-2")));
    assert_eq!(read(json!(" 2 - ")).await, format!("{}{two}\n\n{three}", head("2-3")));
    assert_eq!(read(json!("3-9")).await, format!("{}{three}", head("3-3")));
    assert_eq!(read(json!("4")).await, "ERROR the PDF has 3 pages: page 4 is after the last");
    for wrong in ["0", "3-2", "-2", "one", "", "1,2"] {
        let said = read(json!(wrong)).await;
        assert_eq!(said, format!("ERROR '{wrong}' are no pages: write \"3\", \"2-5\" or \"6-\""));
    }
    let lines = fixture.call("read_file", json!({"path": "bees.pdf", "start_line": 2})).await;
    assert_eq!(lines, "ERROR 'bees.pdf' is a PDF, which has no lines: choose by pages");
    let text = fixture.call("read_file", json!({"path": "text", "pages": "1"})).await;
    assert_eq!(text, "ERROR 'text' is no PDF, and has no pages: choose by start_line");
    let many = fixture.call("read_many_files", json!({"paths": ["bees.pdf", "text"]})).await;
    assert!(many.starts_with("['bees.pdf' is a PDF: read it with read_file]\n\ntext (lines 1-1 of 1)"), "{many}");
}

#[tokio::test]
async fn a_long_pdf_is_cut_and_says_how_to_go_on() {
    let (page, long) = ("x".repeat(300), "y".repeat(3_000));
    let fixture = fixture().with("long.pdf", pdf(&[&page, &page, &page, &long])).limited(|w| w.max_output_bytes(500));
    let read = async |pages: &str| fixture.call("read_file", json!({"path": "long.pdf", "pages": pages})).await;
    let first = read("1-").await;
    assert!(first.starts_with("long.pdf (pages 1-2 of 4)\n"), "{first}");
    assert!(first.ends_with("\n[cut: go on with pages = \"3-\"]"), "{first}");
    assert!(!read("1-2").await.contains("go on"), "what was asked for is all there");
    let last = read("4").await;
    assert!(last.len() < 700 && last.ends_with("y\n[cut: the last page is longer than what is shown]"), "{last}");
}

#[tokio::test]
async fn a_pdf_is_replaced_only_by_who_has_seen_all_of_its_pages() {
    let fixture = fixture().with("bees.pdf", pdf(&["One", "Two"]));
    let write = async || fixture.call("write_file", json!({"path": "bees.pdf", "content": "text"})).await;
    fixture.call("read_file", json!({"path": "bees.pdf", "pages": "1"})).await;
    fixture.next_step();
    assert!(write().await.contains("you have not read all of it"));
    fixture.call("read_file", json!({"path": "bees.pdf"})).await;
    fixture.next_step();
    let written = write().await;
    assert!(!written.starts_with("ERROR"), "{written}");
}

#[tokio::test]
async fn a_hostile_pdf_costs_an_error_and_no_more() {
    let nested = [b"%PDF-1.4\n1 0 obj\n".to_vec(), b"[<<".repeat(50_000)].concat();
    let fixture = fixture().with("none.pdf", "%PDF-1.7 and nothing").with("nested.pdf", nested);
    for name in ["none.pdf", "nested.pdf"] {
        let read = fixture.call("read_file", json!({"path": name})).await;
        assert!(read.starts_with("ERROR the PDF is damaged"), "{name}: {read}");
    }
}
