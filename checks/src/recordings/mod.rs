//! Recorded exchanges with real servers, and the knowledge about each wire that reading them needs.

mod aws_frames;
mod exchange;
mod provider;
mod wires;

use agent::{ModelResponse, Result, llm::Codec};

pub(crate) use self::{
    exchange::{Exchange, Frames, Recording, lines},
    wires::{Called, Said, WIRES, Wire},
};

/// Decodes the response with the codec, whole or streamed.
pub(crate) fn response(codec: &(impl Codec + ?Sized), exchange: &Exchange) -> Result<ModelResponse> {
    let body = exchange.body();
    if !exchange.stream {
        return codec.decode(&body);
    }
    let (mut decoder, mut chunks) = (codec.decoder(false), Vec::new());
    let mut splitter = codec.framing().splitter();
    splitter.push(&body, |event| decoder.frame(event, &mut chunks))?;
    splitter.finish(|event| decoder.frame(event, &mut chunks))?;
    decoder.finish(&mut chunks)
}
