//! The suite itself: it detects codecs that break a claim.

use std::sync::Arc;

use agent_core::{Chunk, Error, ErrorKind, ModelRequest, ModelResponse, Result, Retry, message::Origin};
use agent_llm::{
    Codec, Decoder, ParsedRequest, Progress, RequestReader,
    conformance::{Samples, check},
};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};

use super::samples::ROWS;

/// Defect of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    Nothing,
    /// Accepts a truncated stream as an answer.
    TakesCutStreams,
    /// Ends each block twice.
    EndsTwice,
    /// Keeps at most one block of a non-streamed answer.
    KeepsOneBlock,
    /// Drops the provider's own JSON.
    DropsRaw,
    /// Omits the second message of every request.
    DropsMessage,
    /// Drops the parameters of decoded requests.
    DropsParams,
    /// Does not classify errors.
    Shrugs,
    /// Panics on invalid JSON.
    Panics,
}

struct Liar(Lie, Arc<dyn RequestReader>);

struct LyingDecoder(Lie, Box<dyn Decoder>);

impl RequestReader for Liar {
    fn decode_request(&self, body: &[u8]) -> Result<ParsedRequest> {
        let mut read = self.1.decode_request(body)?;
        if self.0 == Lie::DropsParams {
            read.params = agent_core::ModelParams::default();
        }
        Ok(read)
    }
}

impl Codec for Liar {
    fn origin(&self) -> &Origin {
        self.1.origin()
    }

    fn encode(&self, req: &ModelRequest) -> Result<Request<Bytes>> {
        let mut request = self.1.encode(req)?;
        if self.0 == Lie::DropsMessage {
            let mut body: serde_json::Value = serde_json::from_slice(request.body()).expect("JSON");
            if let Some(messages) = body["messages"].as_array_mut().filter(|messages| messages.len() > 1) {
                messages.remove(1);
            }
            *request.body_mut() = body.to_string().into();
        }
        Ok(request)
    }

    fn decode(&self, body: &[u8]) -> Result<ModelResponse> {
        if self.0 == Lie::Panics {
            serde_json::from_slice::<serde_json::Value>(body).expect("a provider sends JSON");
        }
        let mut response = self.1.decode(body)?;
        match self.0 {
            Lie::KeepsOneBlock => response.message.blocks_mut().truncate(1),
            Lie::DropsRaw => response.message = agent_core::AssistantMessage::new(response.message.blocks().to_vec()),
            _ => {}
        }
        Ok(response)
    }

    fn decode_error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        match self.0 {
            Lie::Shrugs => Error::new(ErrorKind::Provider, "something is wrong").with_retry(Retry::Permanent),
            _ => self.1.decode_error(status, headers, body),
        }
    }

    fn decoder(&self, chunks: bool) -> Box<dyn Decoder> {
        Box::new(LyingDecoder(self.0, self.1.decoder(chunks)))
    }
}

impl Decoder for LyingDecoder {
    fn frame(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> Result<()> {
        self.1.frame(data, chunks)
    }

    fn progress(&self) -> Progress {
        if self.0 == Lie::TakesCutStreams { Progress::Complete } else { self.1.progress() }
    }

    fn finish(self: Box<Self>, chunks: &mut Vec<Chunk>) -> Result<ModelResponse> {
        let Self(lie, inner) = *self;
        if lie == Lie::TakesCutStreams && inner.progress() == Progress::Open {
            return Ok(ModelResponse::new("so far"));
        }
        let response = inner.finish(chunks)?;
        if lie == Lie::EndsTwice {
            chunks.push(Chunk::End { index: 0 });
        }
        Ok(response)
    }
}

/// Returns the claims that the suite reports as broken.
fn broken(lie: Lie) -> Vec<&'static str> {
    check(Liar(lie, (ROWS[0].codec)()), &(ROWS[0].samples)()).broken().map(|(claim, _)| claim).collect()
}

#[test]
fn each_lie_is_found_out() {
    assert_eq!(broken(Lie::Nothing), [""; 0]);
    for (lie, claim) in [
        (Lie::TakesCutStreams, "a cut stream is seen"),
        (Lie::EndsTwice, "chunks tell the message"),
        (Lie::KeepsOneBlock, "a stream makes the message that comes whole"),
        (Lie::DropsRaw, "a turn goes back as it came"),
        (Lie::DropsRaw, "unknown fields are kept"),
        (Lie::DropsMessage, "requests are JSON, paired, and without keys"),
        (Lie::DropsParams, "requests survive being read"),
        (Lie::Shrugs, "errors say what layers need"),
        (Lie::Panics, "damaged data is an answer or an error"),
    ] {
        assert!(broken(lie).contains(&claim), "{lie:?} breaks {:?}", broken(lie));
    }
}

#[test]
fn a_report_says_what_is_wrong() {
    let report = check((ROWS[0].codec)(), &Samples::new());
    assert!(!report.is_clean());
    let text = report.to_string();
    assert!(text.contains("BROKEN the samples are what they say\n         there is no streamed answer"), "{text}");
    let panic = std::panic::catch_unwind(|| report.assert_clean()).expect_err("not clean");
    assert!(panic.downcast_ref::<String>().expect("a message").contains("12 of 13 claims hold"), "{text}");
}
