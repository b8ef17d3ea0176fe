//! Response bodies within size limits.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use reqwest::{
    Response,
    header::{CONTENT_ENCODING, HeaderMap},
};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, BufReader};
use tokio_util::io::StreamReader;

/// Largest window of Zstandard, as a power of two: the 8 MiB that RFC 9659 allows on the web.
const ZSTD_WINDOW: u32 = 23;

/// Maximum of nested content encodings.
const MOST_ENCODINGS: usize = 2;

/// Unread body of a response.
pub(crate) struct Body {
    raw: BoxStream<'static, reqwest::Result<Bytes>>,
    encodings: Vec<String>,
}

/// Reason why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum TooMuch {
    /// The body exceeds the limit, compressed or decompressed.
    Large,
    /// The connection broke, or the compressed data is corrupt.
    Broken(io::Error),
    /// The content encoding is unknown, or there are more than two.
    Encoding(String),
}

impl Body {
    pub(super) fn new(headers: &HeaderMap, answer: Response) -> Self {
        let values = headers.get_all(CONTENT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
        let encodings = values.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase());
        let encodings = encodings.filter(|name| !name.is_empty() && name != "identity").collect();
        Self { raw: answer.bytes_stream().boxed(), encodings }
    }

    /// Reads and decompresses the whole body: at most `most` bytes.
    pub(crate) async fn read(self, most: usize) -> Result<Vec<u8>, TooMuch> {
        let (reader, over) = self.reader(most)?;
        let mut bytes = Vec::new();
        let read = reader.take(most as u64 + 1).read_to_end(&mut bytes).await;
        match read {
            _ if over.load(Ordering::Relaxed) || bytes.len() > most => Err(TooMuch::Large),
            Err(e) => Err(TooMuch::Broken(e)),
            Ok(_) => Ok(bytes),
        }
    }

    /// Reads and decompresses the body as a stream. `most` also bounds the bytes from the network,
    /// since an endless compressed body may decompress to nothing; the flag is set if the body was
    /// longer.
    pub(crate) fn reader(self, most: usize) -> Result<(Reader, Arc<AtomicBool>), TooMuch> {
        if self.encodings.len() > MOST_ENCODINGS {
            return Err(TooMuch::Encoding(crate::text::cut(&self.encodings.join(", "), 40).to_owned()));
        }
        let (mut left, over) = (most, Arc::new(AtomicBool::new(false)));
        let noted = over.clone();
        let bounded = self.raw.map_err(io::Error::other).and_then(move |chunk| {
            let fits = left.checked_sub(chunk.len());
            left = fits.unwrap_or(0);
            noted.fetch_or(fits.is_none(), Ordering::Relaxed);
            futures::future::ready(if fits.is_some() { Ok(chunk) } else { Err(io::Error::other("too large")) })
        });
        let mut reader: Reader = Box::pin(StreamReader::new(bounded));
        for encoding in self.encodings.iter().rev() {
            reader = Box::pin(BufReader::new(decoder(encoding, reader)?));
        }
        Ok((reader, over))
    }

    /// Returns about the first `most` bytes, or the available part; for error messages.
    #[cfg(any(feature = "openapi", feature = "web"))]
    pub(crate) async fn beginning(self, most: usize) -> String {
        // A larger error body is not read.
        let bytes = self.read(most.max(64 << 10)).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        crate::text::cut(&text, most).to_owned()
    }
}

/// Reader of a body as it arrives.
pub(crate) type Reader = Pin<Box<dyn AsyncBufRead + Send>>;

fn decoder(encoding: &str, reader: Reader) -> Result<Pin<Box<dyn AsyncRead + Send>>, TooMuch> {
    Ok(match encoding {
        "gzip" | "x-gzip" => {
            let mut decoder = GzipDecoder::new(reader);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        "deflate" => Box::pin(ZlibDecoder::new(reader)),
        "br" => Box::pin(BrotliDecoder::new(reader)),
        "zstd" => Box::pin(ZstdDecoder::with_params(reader, &[DParameter::window_log_max(ZSTD_WINDOW)])),
        other => return Err(TooMuch::Encoding(crate::text::cut(other, 40).to_owned())),
    })
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("encodings", &self.encodings).finish_non_exhaustive()
    }
}
