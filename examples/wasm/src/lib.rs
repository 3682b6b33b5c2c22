//! The core as a WASM module that imports nothing: bytes in, one JSON row out for each frame.
//!
//! The host asks for room with [`room`], writes bytes there, calls [`push`] and reads the rows: [`rows`] bytes at
//! [`rows_at`]. `replay.mjs` beside this crate shows it in node.
#![no_std]

extern crate alloc;

#[path = "../../../tests/interop/differential/row.rs"]
mod row;

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

use dsh_wire::peer::Peer;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

struct Module {
    peer: Option<Peer<()>>,
    room: Vec<u8>,
    rows: String,
}

struct Global(UnsafeCell<Module>);

// SAFETY: the target has one thread.
unsafe impl Sync for Global {}

static MODULE: Global = Global(UnsafeCell::new(Module { peer: None, room: Vec::new(), rows: String::new() }));

fn module<R>(act: impl FnOnce(&mut Module) -> R) -> R {
    // SAFETY: one thread, and no export calls another.
    act(unsafe { &mut *MODULE.0.get() })
}

/// Starts a new connection.
// SAFETY: for all exports, no other symbol of the module has the name.
#[unsafe(no_mangle)]
pub extern "C" fn start(line_limit: usize) {
    module(|module| module.peer = Some(Peer::with_seed_and_limit(0, line_limit)));
}

/// Where the host may write `len` bytes, until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn room(len: usize) -> *mut u8 {
    module(|module| {
        module.room.resize(len, 0);
        module.room.as_mut_ptr()
    })
}

/// Takes the first `len` bytes of the room as bytes of the stream; returns how many lines were dropped.
#[unsafe(no_mangle)]
pub extern "C" fn push(len: usize) -> usize {
    module(|Module { peer, room, rows }| {
        let peer = peer.get_or_insert_with(|| Peer::with_seed(0));
        peer.push(room.get(..len).unwrap_or_default());
        drain(peer, rows)
    })
}

/// Declares the end of the stream; returns how many lines were dropped.
#[unsafe(no_mangle)]
pub extern "C" fn end() -> usize {
    module(|Module { peer, rows, .. }| {
        let peer = peer.get_or_insert_with(|| Peer::with_seed(0));
        peer.end_input();
        drain(peer, rows)
    })
}

/// How many bytes of rows have come since the last call of [`forget`], as JSON lines.
#[unsafe(no_mangle)]
pub extern "C" fn rows() -> usize {
    module(|module| module.rows.len())
}

/// Where they are, until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn rows_at() -> *const u8 {
    module(|module| module.rows.as_ptr())
}

/// Drops the rows.
#[unsafe(no_mangle)]
pub extern "C" fn forget() {
    module(|module| module.rows.clear());
}

fn drain(peer: &mut Peer<()>, rows: &mut String) -> usize {
    let mut dropped = 0;
    while let Some(event) = peer.next_event() {
        let before = rows.len();
        rows.push('{');
        if row::write(rows, event) {
            rows.push('\n');
        } else {
            rows.truncate(before);
            dropped += 1;
        }
    }
    dropped
}
