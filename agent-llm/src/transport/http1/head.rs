//! The heads of requests and answers.

use std::mem::MaybeUninit;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use httparse::{ParserConfig, Status};

use super::{
    Malformed,
    body::{Chunk, Framing},
};

/// The most headers of an answer.
pub(super) const MOST_HEADERS: usize = 100;
/// The most bytes of an answer's head.
const MOST: usize = 64 << 10;

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) answer: Response<()>,
    pub(super) framing: Framing,
    /// The server leaves the connection open for another request.
    pub(super) stays_open: bool,
}

/// The head of `request`, for a server named `host`. What frames the body is written here, whatever the request says of it.
pub(super) fn write(request: &Request<Bytes>, host: &HeaderValue) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let slash = if path.starts_with('/') { "" } else { "/" };
    for text in [request.method().as_str(), " ", slash, path, " HTTP/1.1\r\n"] {
        out.extend_from_slice(text.as_bytes());
    }
    let mut line = |name: &HeaderName, value: &[u8]| {
        for bytes in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(bytes);
        }
    };
    if !request.headers().contains_key(header::HOST) {
        line(&header::HOST, host.as_bytes());
    }
    for (name, value) in request.headers() {
        if ![header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(name) {
            line(name, value.as_bytes());
        }
    }
    let length = request.body().len();
    if length > 0 || [Method::POST, Method::PUT, Method::PATCH].contains(request.method()) {
        line(&header::CONTENT_LENGTH, length.to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Takes the head of the answer to a request of this method off `read`; none until more was read. Interim answers before it
/// are skipped.
pub(super) fn take(read: &mut BytesMut, method: &Method) -> Result<Option<Head>, Malformed> {
    loop {
        let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let mut parsed = httparse::Response::new(&mut []);
        let used = match ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, read, &mut headers) {
            Ok(Status::Complete(used)) => used,
            Ok(Status::Partial) if read.len() <= MOST => return Ok(None),
            Ok(Status::Partial) => return Err(Malformed("the head of the answer does not end")),
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed("the answer has too many headers")),
            Err(_) => return Err(Malformed("the answer is not HTTP")),
        };
        let is_one_zero = parsed.version == Some(0);
        let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.ok_or(Malformed("the answer has no status"))?;
        let mut answer = Response::new(());
        *answer.status_mut() = status;
        for header in parsed.headers.iter() {
            let name = HeaderName::from_bytes(header.name.as_bytes());
            let value = HeaderValue::from_bytes(header.value);
            let (Ok(name), Ok(value)) = (name, value) else { return Err(Malformed("a header cannot be read")) };
            answer.headers_mut().append(name, value);
        }
        read.advance(used);
        match status {
            StatusCode::SWITCHING_PROTOCOLS => return Err(Malformed("the server wants to speak another protocol")),
            interim if interim.is_informational() => {}
            _ => return framed(answer, is_one_zero, method).map(Some),
        }
    }
}

/// The head with how its body is framed (RFC 9112, section 6.3).
fn framed(answer: Response<()>, is_one_zero: bool, method: &Method) -> Result<Head, Malformed> {
    let headers = answer.headers();
    let said_to = |what: &str| tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case(what));
    let stays_open = if is_one_zero { said_to("keep-alive") } else { !said_to("close") };
    let has_none = *method == Method::HEAD || matches!(answer.status().as_u16(), 204 | 304);
    let length = length(headers)?;
    let (framing, stays_open) = if has_none {
        (Framing::Length(0), stays_open)
    } else if headers.contains_key(header::TRANSFER_ENCODING) {
        let mut codings = tokens(headers, &header::TRANSFER_ENCODING);
        let only_chunked =
            codings.next().is_some_and(|c| c.eq_ignore_ascii_case("chunked")) && codings.next().is_none();
        if !only_chunked || is_one_zero {
            return Err(Malformed("the answer has a transfer encoding that nobody asked for"));
        }
        // Somebody on the way may have believed the length.
        (Framing::Chunked(Chunk::Size), stays_open && length.is_none())
    } else if let Some(length) = length {
        (Framing::Length(length), stays_open)
    } else {
        (Framing::UntilClose, false)
    };
    Ok(Head { answer, framing, stays_open })
}

/// The length of the body, if it is said: it may be said often, but not in two ways.
fn length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    if !headers.contains_key(header::CONTENT_LENGTH) {
        return Ok(None);
    }
    let length = |token: &str| token.bytes().all(|b| b.is_ascii_digit()).then(|| token.parse::<u64>().ok()).flatten();
    let mut lengths = tokens(headers, &header::CONTENT_LENGTH).map(length);
    let first = lengths.next().flatten().filter(|first| lengths.all(|other| other == Some(*first)));
    first.map(Some).ok_or(Malformed("the length of the answer cannot be read"))
}

/// The parts of a header's values between commas; a value that is no text has one that means nothing.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"));
    values.flat_map(|value| value.split(',')).map(|token| token.trim_matches([' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sent: &str) -> Result<Option<Head>, Malformed> {
        take(&mut BytesMut::from(sent), &Method::POST)
    }

    fn framing(head: &str) -> (Framing, bool) {
        let head = read(&format!("HTTP/1.1 200 OK\r\n{head}\r\n")).expect("a head").expect("whole");
        (head.framing, head.stays_open)
    }

    #[test]
    fn the_end_of_a_body_is_where_its_head_says() {
        assert_eq!(framing("content-length: 5\r\n"), (Framing::Length(5), true));
        assert_eq!(framing("content-length: 5, 5\r\nContent-Length: 5\r\n"), (Framing::Length(5), true));
        assert_eq!(framing("content-length: 5\r\nconnection: x, Close\r\n"), (Framing::Length(5), false));
        assert_eq!(framing("transfer-encoding: Chunked\r\n"), (Framing::Chunked(Chunk::Size), true));
        let both = "content-length: 5\r\ntransfer-encoding: chunked\r\n";
        assert_eq!(framing(both), (Framing::Chunked(Chunk::Size), false));
        assert_eq!(framing(""), (Framing::UntilClose, false));
        let old = |more: &str| read(&format!("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n{more}\r\n")).expect("a head");
        assert!(!old("").expect("whole").stays_open && old("connection: keep-alive\r\n").expect("whole").stays_open);
        for none in ["HTTP/1.1 204 None\r\n\r\n", "HTTP/1.1 304 Same\r\ncontent-length: 5\r\n\r\n"] {
            assert_eq!(read(none).expect("a head").expect("whole").framing, Framing::Length(0), "{none}");
        }
    }

    #[test]
    fn a_head_that_can_be_read_in_two_ways_is_refused() {
        for head in [
            "content-length: 5\r\ncontent-length: 6\r\n",
            "content-length: 5, 6\r\n",
            "content-length: +5\r\n",
            "content-length: \r\n",
            "content-length: 5 5\r\n",
            "content-length: 99999999999999999999\r\n",
            "transfer-encoding: gzip, chunked\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: identity\r\n",
            "no header\r\n",
            "a : b\r\n",
        ] {
            read(&format!("HTTP/1.1 200 OK\r\n{head}\r\n")).map(drop).expect_err(head);
        }
        read("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").map(drop).expect_err("no chunks in 1.0");
        read("HTTP/1.1 101 Switch\r\n\r\n").map(drop).expect_err("another protocol");
        read("HTTP/2 200 OK\r\n\r\n").map(drop).expect_err("another version");
        let many = "a: b\r\n".repeat(MOST_HEADERS + 1);
        read(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")).map(drop).expect_err("too many");
        read(&format!("HTTP/1.1 200 OK\r\na: {}", "x".repeat(MOST))).map(drop).expect_err("too long");
    }

    #[test]
    fn interim_answers_are_skipped_and_the_body_is_left() {
        let sent = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
        for end in 0..sent.len() - 2 {
            assert!(read(&sent[..end]).expect("nothing wrong").is_none(), "{end}");
        }
        let mut whole = BytesMut::from(sent);
        let head = take(&mut whole, &Method::POST).expect("a head").expect("whole");
        assert_eq!((head.answer.status(), head.answer.headers().len(), &*whole), (StatusCode::OK, 1, &b"hi"[..]));
    }

    #[test]
    fn a_request_names_its_path_its_host_and_its_length() {
        let host = HeaderValue::from_static("h:8080");
        let text = |request: &Request<Bytes>| String::from_utf8(write(request, &host)).expect("text");
        let mut post = Request::post("http://h:8080?x=1").body(Bytes::from("{}")).expect("a request");
        assert_eq!(text(&post), "POST /?x=1 HTTP/1.1\r\nhost: h:8080\r\ncontent-length: 2\r\n\r\n");
        post.headers_mut().insert(header::HOST, HeaderValue::from_static("other"));
        post.headers_mut().insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        assert_eq!(text(&post), "POST /?x=1 HTTP/1.1\r\nhost: other\r\ncontent-length: 2\r\n\r\n");
        let get = Request::get("http://me:secret@h:8080/v1").body(Bytes::new()).expect("a request");
        assert_eq!(text(&get), "GET /v1 HTTP/1.1\r\nhost: h:8080\r\n\r\n");
    }
}
