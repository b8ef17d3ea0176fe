//! Decompression of responses.

use std::io;

use agent_core::{Error, ErrorKind, Retry};
#[cfg(feature = "compression")]
use async_compression::tokio::bufread::{BrotliDecoder, ZstdDecoder};
use async_compression::tokio::bufread::{GzipDecoder, ZlibDecoder};
use futures::TryStreamExt;
use http::{HeaderValue, Response, header};
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};

use crate::Body;

/// Value of the `accept-encoding` header.
pub(super) const ACCEPTED: HeaderValue =
    HeaderValue::from_static(if cfg!(feature = "compression") { "gzip, deflate, br, zstd" } else { "gzip, deflate" });

/// Decompresses the response. A response with an unknown encoding is unchanged, including its
/// header.
pub(super) fn decoded(answer: Response<Body>) -> Response<Body> {
    let Some(encoding) = answer.headers().get(header::CONTENT_ENCODING) else { return answer };
    let encoding = encoding.as_bytes().to_ascii_lowercase();
    let (mut head, body) = answer.into_parts();
    let pieces = |body: Body| StreamReader::new(body.map_err(io::Error::other));
    let body = match &*encoding {
        b"gzip" | b"x-gzip" => {
            let mut decoder = GzipDecoder::new(pieces(body));
            decoder.multiple_members(true);
            read(decoder)
        }
        b"deflate" => read(ZlibDecoder::new(pieces(body))),
        #[cfg(feature = "compression")]
        b"br" => read(BrotliDecoder::new(pieces(body))),
        #[cfg(feature = "compression")]
        b"zstd" => read(ZstdDecoder::new(pieces(body))),
        _ => return Response::from_parts(head, body),
    };
    head.headers.remove(header::CONTENT_ENCODING);
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, body)
}

fn read(decoder: impl AsyncRead + Send + 'static) -> Body {
    Body::new(ReaderStream::new(decoder).map_err(why))
}

/// Returns the underlying transport error, or the reason why decompression failed.
fn why(e: io::Error) -> Error {
    let cut = e.kind() == io::ErrorKind::UnexpectedEof;
    match e.downcast::<Error>() {
        Ok(of_network) => of_network,
        Err(e) => {
            let (kind, message) = match cut {
                true => (ErrorKind::Truncated, "the compressed answer ended before it was complete"),
                false => (ErrorKind::Transport, "the compressed answer cannot be decoded"),
            };
            Error::new(kind, message).with_retry(Retry::Temporary(None)).with_context("part", "body").with_source(e)
        }
    }
}
