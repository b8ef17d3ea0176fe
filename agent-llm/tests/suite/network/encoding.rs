//! Compressed answers.

use agent_core::{ErrorKind, Model};
use agent_llm::{HttpTransport, model};
use async_compression::tokio::write::{GzipEncoder, ZlibEncoder};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{
    common::{ask as request, hello},
    server::{answering, ask},
};

macro_rules! compressed {
    ($Encoder:ident, $text:expr) => {{
        let mut encoder = $Encoder::new(Vec::new());
        finish(&mut encoder, $text).await;
        encoder.into_inner()
    }};
}

async fn finish(encoder: &mut (impl AsyncWrite + Unpin), text: &[u8]) {
    encoder.write_all(text).await.expect("compresses");
    encoder.shutdown().await.expect("compresses");
}

fn answer(encoding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {}\r\n", body.len());
    [head.as_bytes(), b"content-type: application/json\r\n\r\n", body].concat()
}

async fn read(encoding: &'static str, body: Vec<u8>) -> agent_core::Result<Vec<u8>> {
    let url = answering(move |_| answer(encoding, &body)).await;
    ask(&HttpTransport::new(), &url, "?").await
}

#[tokio::test]
async fn an_answer_is_read_however_it_was_compressed() {
    let text: Vec<u8> = (0..100_000).map(|at| (at % 7) as u8).collect();
    let mut encoded = vec![("GZip", compressed!(GzipEncoder, &text)), ("deflate", compressed!(ZlibEncoder, &text))];
    #[cfg(feature = "compression")]
    {
        use async_compression::tokio::write::{BrotliEncoder, ZstdEncoder};
        encoded.push(("br", compressed!(BrotliEncoder, &text)));
        encoded.push(("zstd", compressed!(ZstdEncoder, &text)));
    }
    for (encoding, body) in encoded.drain(..) {
        assert!(body.len() < 10_000);
        assert!(read(encoding, body).await.expect(encoding) == text, "{encoding}");
    }
}

#[tokio::test]
async fn a_compressed_answer_that_was_cut_is_truncated() {
    let mut body = compressed!(GzipEncoder, &[b'x'; 1_000]);
    body.truncate(body.len() - 10);
    assert_eq!(read("gzip", body).await.expect_err("cut").kind(), ErrorKind::Truncated);
}

#[tokio::test]
async fn the_limit_of_an_answer_counts_what_it_decodes_to() {
    let bomb = compressed!(GzipEncoder, &vec![b' '; 10 << 20]);
    let url = answering(move |_| answer("gzip", &bomb)).await;
    let model = model("openai:m").retries(0).base_url(url).max_answer(1 << 20).build().expect("a model");
    let error = model.call(request()).await.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

#[tokio::test]
async fn an_encoding_that_nobody_knows_is_named() {
    let url = answering(|_| answer("rot13", b"uryyb")).await;
    let error = model("openai:m").retries(0).base_url(url).build().expect("a model").call(request()).await;
    assert!(error.expect_err("unreadable").message().contains("'rot13'"));
}

#[tokio::test]
async fn a_byte_order_mark_is_no_part_of_the_answer() {
    let url = answering(|_| answer("identity", format!("\u{feff}{}", hello()).as_bytes())).await;
    let model = model("openai:m").retries(0).base_url(url).build().expect("a model");
    assert_eq!(model.call(request()).await.expect("an answer").message.text(), "hello");
}
