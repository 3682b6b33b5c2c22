//! Every recorded conversation, through a peer: the same events whole and one byte at a time.

use dsh_wire::peer::Peer;

use crate::recording::{self, Direction};

/// The events of a stream that comes in pieces of `chunk` bytes, written in a form to compare with.
fn events(stream: &[u8], chunk: usize) -> Vec<String> {
    let mut peer: Peer<()> = Peer::with_seed(0);
    let mut seen = Vec::new();
    let mut take = |peer: &mut Peer<()>| {
        while let Some(event) = peer.next_event() {
            seen.push(format!("{event:?}"));
        }
    };
    for piece in stream.chunks(chunk) {
        peer.push(piece);
        take(&mut peer);
    }
    peer.end_input();
    take(&mut peer);
    seen
}

#[test]
fn recordings_give_the_same_events_whole_and_one_byte_at_a_time() {
    let mut frames = 0;
    for recording in recording::all() {
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            let stream = recording.stream(direction);
            let whole = events(&stream, stream.len().max(1));
            assert_eq!(events(&stream, 1), whole, "{} {direction:?}", recording.name);
            frames += whole.len();
            if direction == Direction::ServerToClient {
                // The runtime answers an infinite id with `null`, which is no frame; nothing else of it is dropped.
                let dropped = whole.iter().filter(|event| event.starts_with("Dropped")).count();
                assert_eq!(dropped, if recording.name == "ids" { 2 } else { 0 }, "{}", recording.name);
                assert!(whole.iter().all(|event| !event.starts_with("Request")), "{}: {whole:?}", recording.name);
            }
        }
    }
    assert!(frames > 3000, "the recordings are there: {frames}");
}
