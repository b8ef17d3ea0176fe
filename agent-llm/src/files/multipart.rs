//! Multipart form with a file (RFC 7578).

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Returns the media type and the body of a form.
pub(super) fn form(fields: &[(&str, &str)], name: &str, mime: &str, file: &[u8]) -> (String, Bytes) {
    // The boundary must not occur in the file: no file contains its own digest in practice.
    let digest: String = Sha256::digest(file).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let boundary = format!("agent-{digest}");
    let mut body = Vec::with_capacity(file.len() + 512);
    for (field, value) in fields {
        let head = format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(head.as_bytes());
    }
    let name = escaped(name);
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\ncontent-type: {mime}\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(file);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body.into())
}

/// Escapes characters that would end the quoted name.
fn escaped(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_add_a_field_to_the_form() {
        let (kind, body) = form(&[("purpose", "user_data")], "a\"\r\nx-evil: 1", "text/plain", b"hello");
        let body = String::from_utf8(body.to_vec()).expect("text");
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").expect("a boundary");
        let parts: Vec<_> = body.split(&format!("--{boundary}")).collect();
        assert_eq!(parts.len(), 4, "{body}");
        assert_eq!(parts[1], "\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n");
        assert!(parts[2].contains("filename=\"a%22%0D%0Ax-evil: 1\"\r\ncontent-type: text/plain\r\n\r\nhello\r\n"));
        assert_eq!(parts[3], "--\r\n");
    }
}
